INSERT INTO operations (
    id, server, principal, scope, session, program, tool, command, directory, state, reason, exit_code, signal, created_at,
    started_at, ended_at, updated_at, duration_ms, cpu_ms, peak_memory, output_bytes, output_lines, percent, phase, critical,
    high, medium, low, info, collected_at, keeps_running, stored, stored_bytes, search
) VALUES (
    :id, :server, :principal, :scope, :session, :program, :tool, :command, :directory, :state, :reason, :exit_code, :signal,
    :created_at, :started_at, :ended_at, :updated_at, :duration_ms, :cpu_ms, :peak_memory, :output_bytes, :output_lines,
    :percent, :phase, :critical, :high, :medium, :low, :info, :collected_at, :keeps_running, :stored, :stored_bytes, :search
)
ON CONFLICT (id) DO UPDATE SET
    state = excluded.state, reason = excluded.reason, exit_code = excluded.exit_code, signal = excluded.signal,
    started_at = excluded.started_at, ended_at = excluded.ended_at, updated_at = excluded.updated_at,
    duration_ms = excluded.duration_ms, cpu_ms = excluded.cpu_ms, peak_memory = excluded.peak_memory,
    output_bytes = excluded.output_bytes, output_lines = excluded.output_lines, percent = excluded.percent,
    phase = excluded.phase, critical = excluded.critical, high = excluded.high, medium = excluded.medium,
    low = excluded.low, info = excluded.info, collected_at = excluded.collected_at, stored = excluded.stored,
    stored_bytes = excluded.stored_bytes, search = excluded.search
RETURNING number
