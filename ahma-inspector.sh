#!/usr/bin/env bash
# Opens the MCP Inspector on this server, with the server's log on stderr.
#
#   ./ahma-inspector.sh                                     the web page
#   ./ahma-inspector.sh --cli --method tools/list           one request, its answer on stdout
#   ./ahma-inspector.sh --tui -- --network off              flags of the server stand after --
#   ./ahma-inspector.sh --cli --method tools/call --tool-name cargo_check -- --sync
#                                                           wait for the result of an asynchronous tool
#
# AHMA_MCP names the server (default: the newest build of this clone, else ahma_mcp on PATH), INSPECTOR the Inspector
# (default: mcp-inspector on PATH, else npx fetches version 2). The Inspector needs Node.js 22.19 or newer.
set -euo pipefail

# The comment above is the help; the Inspector's own is shown with a mode before it: --cli --help.
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
    sed -n '2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"
    exit
fi

fail() { printf 'error: %s\nhint: %s\n' "$1" "$2" >&2; exit 3; }

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/target}

# The build that is newer: the one that was just made.
server=${AHMA_MCP:-}
if [[ -z $server ]]; then
    server=$(ls -t "$target"/{release,debug}/ahma_mcp 2>/dev/null | head -n 1 || true)
fi
server=$(command -v "${server:-ahma_mcp}") ||
    fail "${AHMA_MCP:-ahma_mcp} was not found" 'cargo build --release, or name the program in AHMA_MCP'

command -v node >/dev/null || fail 'the Inspector needs Node.js' 'install Node.js 22.19 or newer'
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)' ||
    fail "the Inspector needs Node.js 22.19 or newer, this is $(node --version)" 'npm install --prefix ~/node22 node@22, then PATH=~/node22/node_modules/.bin:$PATH'

if [[ -n ${INSPECTOR:-} ]]; then
    inspector=("$INSPECTOR")
elif command -v mcp-inspector >/dev/null; then
    inspector=(mcp-inspector)
else
    inspector=(npx --yes @modelcontextprotocol/inspector@2)
fi

# Mode first, then the Inspector's own arguments, then the server's.
mode=()
case ${1:-} in
    --web | --cli | --tui) mode=("$1"); shift ;;
esac
own=()
while [[ $# -gt 0 && $1 != -- ]]; do
    own+=("$1")
    shift
done
[[ $# -gt 0 ]] && shift

# The Inspector would take the server's flags for its own, so they go into a file.
config=$(mktemp -d)
trap 'rm -rf "$config"' EXIT
node -e '
    const [file, command, cwd, ...args] = process.argv.slice(1);
    const Ahama = { type: "stdio", command, args: ["--log-to-stderr", ...args], cwd };
    require("fs").writeFileSync(file, JSON.stringify({ mcpServers: { Ahama } }));
' -- "$config/mcp.json" "$server" "$PWD" "$@"

# The page shows all servers of the file; the other modes want one named.
[[ ${mode[*]} == --cli || ${mode[*]} == --tui ]] && own=(--server Ahama "${own[@]}")
"${inspector[@]}" "${mode[@]}" --config "$config/mcp.json" "${own[@]}"
