"""Runs the conformance suite against each of our programs and compares its verdict with `expected-failures.txt`.

Every check that fails must be listed there, and every line there must still fail. Some scenarios race their own clock
against ours (`sse-retry` takes a stream that opens late for a reconnect), so a run with surprises is repeated.
"""

import fnmatch
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from programs import AHMA_MCP, BRIDGE, BUILT, NODE_PROGRAMS, environment, scope, serving

REVISIONS = ["2025-11-25", "2026-07-28"]
EVERYTHING = [sys.executable, HERE / "everything"]
OUR_TOOLS = ["--tools-dir", HERE / "tools"]
SERVERS = {
    "bridge-isolated": [BRIDGE, "--http-port", "0", "--session-isolation", "--", *EVERYTHING],
    "bridge-shared": [BRIDGE, "--http-port", "0", "--", *EVERYTHING],
    "server-isolated": [AHMA_MCP, "--mode", "http", "--http-port", "0", "--session-isolation", *OUR_TOOLS],
    "server-shared": [AHMA_MCP, "--mode", "http", "--http-port", "0", *OUR_TOOLS],
}
# How often a run is tried until it has no surprises.
ATTEMPTS = 3
# A suite that takes longer hangs.
SUITE_SECONDS = 900
CLIENT = BUILT / "examples" / "conformance_client"


def suite(side, *arguments):
    """Runs the suite; gives {scenario: [check, …]}."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as output:
        command = [NODE_PROGRAMS / "conformance", side, *arguments, "--timeout", "120000", "--output-dir", output]
        log = subprocess.run(
            [*map(str, command)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SUITE_SECONDS,
        )
        found = {}
        for checks in Path(output).rglob("checks.json"):
            name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", str(checks.parent.relative_to(output)))
            found[name.removeprefix("server-") if side == "server" else name] = json.loads(checks.read_text())
        if not found:
            sys.exit(f"the suite judged nothing:\n{log.stdout.decode(errors='replace')}")
        return found


def run(target, revision):
    wanted = ["--requirements", revision]
    if target == "client":
        return suite("client", "--command", CLIENT, *wanted)
    # A fresh server each time: what one revision leaves behind shall not help or harm the other.
    with scope() as directory, serving(SERVERS[target], directory) as address:
        return suite("server", "--url", address, *wanted)


def expectations():
    """[(target, pattern), …] of the file that explains them."""
    lines = (HERE / "expected-failures.txt").read_text().splitlines()
    return [tuple(line.split()) for line in (line.partition("#")[0].strip() for line in lines) if line]


def judge(target, revision, scenarios, expected, used):
    failures, passed = {}, 0
    for scenario, checks in scenarios.items():
        for check in checks:
            passed += check["status"] == "SUCCESS"
            if check["status"] == "FAILURE":
                failures[f"{revision}/{scenario}:{check['id']}"] = check.get("errorMessage") or check["description"]
    unexpected = 0
    for failure, why in sorted(failures.items()):
        excuses = {line for line in expected if fnmatch.fnmatch(target, line[0]) and fnmatch.fnmatch(failure, line[1])}
        used |= excuses
        if not excuses:
            unexpected += 1
            print(f"  FAILED {failure}\n         {why}")
    allowed = f", {len(failures) - unexpected} expected to fail" if len(failures) > unexpected else ""
    print(f"{target} {revision}: {len(scenarios)} scenarios, {passed} checks passed{allowed}, {unexpected} failed")
    return unexpected


def main():
    targets = sys.argv[1:] or [*SERVERS, "client"]
    expected, used, failed = expectations(), set(), 0
    for target in targets:
        for revision in REVISIONS:
            for _attempt in range(ATTEMPTS):
                surprises = judge(target, revision, run(target, revision), expected, used)
                if not surprises:
                    break
            failed += surprises
    if not sys.argv[1:]:
        for stale in [line for line in expected if line not in used]:
            failed += 1
            print(f"expected-failures.txt: {' '.join(stale)} does not fail any more; remove the line")
    sys.exit(1 if failed else 0)


main()
