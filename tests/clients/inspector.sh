#!/bin/sh
# The Inspector's command line. Arguments: era, then the server.
set -eu
era=$1
shift
mcp-inspector --cli "$@" --protocol-era "$era" -q --format json --method tools/list | grep -q '"sandboxed_shell"'
mcp-inspector --cli "$@" --protocol-era "$era" -q --format json --method tools/call --tool-name sandboxed_shell \
    --tool-arg 'command=echo $((6 * 7))' --tool-arg execution_mode=synchronous | grep -q 42
