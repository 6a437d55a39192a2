CREATE TABLE servers (
    server     TEXT PRIMARY KEY,
    pid        INTEGER NOT NULL,
    scope      TEXT NOT NULL,
    version    TEXT NOT NULL,
    started_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Columns that are searched; what is only read back is in `details`, so that a search reads little.
CREATE TABLE operations (
    number        INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    server        TEXT NOT NULL,
    principal     TEXT NOT NULL,
    scope         TEXT NOT NULL,
    session       TEXT,
    program       TEXT,
    tool          TEXT NOT NULL,
    command       TEXT NOT NULL,
    directory     TEXT NOT NULL,
    state         TEXT NOT NULL,
    reason        TEXT,
    exit_code     INTEGER,
    signal        INTEGER,
    created_at    INTEGER NOT NULL,
    started_at    INTEGER,
    ended_at      INTEGER,
    updated_at    INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    cpu_ms        INTEGER,
    peak_memory   INTEGER,
    output_bytes  INTEGER NOT NULL,
    output_lines  INTEGER NOT NULL,
    percent       REAL,
    phase         TEXT,
    critical      INTEGER NOT NULL,
    high          INTEGER NOT NULL,
    medium        INTEGER NOT NULL,
    low           INTEGER NOT NULL,
    info          INTEGER NOT NULL,
    collected_at  INTEGER,
    keeps_running INTEGER NOT NULL,
    -- Where the output is: 'row', 'plain' (a file) or 'zstd' (a compressed file).
    stored        TEXT NOT NULL,
    stored_bytes  INTEGER NOT NULL,
    keep_until    INTEGER,
    search        TEXT NOT NULL
);
CREATE INDEX operations_of_owner ON operations (principal, scope, number);
CREATE INDEX operations_by_tool ON operations (tool, number);
CREATE INDEX operations_by_state ON operations (state, number);
CREATE INDEX operations_by_time ON operations (created_at);

CREATE TABLE details (
    number    INTEGER PRIMARY KEY REFERENCES operations ON DELETE CASCADE,
    arguments TEXT,
    outcome   TEXT
);

CREATE TABLE outputs (
    number     INTEGER PRIMARY KEY REFERENCES operations ON DELETE CASCADE,
    -- All of it, unless it is in a file; packed with zstd once it has ended.
    head       BLOB,
    head_bytes INTEGER NOT NULL,
    packed     INTEGER NOT NULL,
    -- The end of an output over the quota.
    tail       BLOB
);

CREATE TABLE findings (
    number   INTEGER NOT NULL REFERENCES operations ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    severity INTEGER NOT NULL,
    finding  TEXT NOT NULL,
    PRIMARY KEY (number, place)
) WITHOUT ROWID;
CREATE INDEX findings_by_severity ON findings (severity, number);

-- Requests to stop operations, for the servers that run them.
CREATE TABLE stops (
    id     TEXT PRIMARY KEY,
    server TEXT NOT NULL,
    reason TEXT
) WITHOUT ROWID;

CREATE TABLE tasks (
    id         TEXT PRIMARY KEY,
    operation  TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    life_ms    INTEGER NOT NULL
) WITHOUT ROWID;
