#!/bin/sh
# The script in the top directory that opens the Inspector. Arguments: the server and its flags.
set -eu
AHMA_MCP=$1
export AHMA_MCP
shift
"$(dirname "$0")/../../ahma-inspector.sh" --cli -q --format json --method tools/call --tool-name sandboxed_shell \
    --tool-arg 'command=echo $((6 * 7))' --tool-arg execution_mode=synchronous -- "$@" | grep -q 42
