"""Runs the Rust tests of a suite. A test that fails is run once more, alone, after its suite; if it
passes then, it is listed as flaky and the suite passes.

    suite.py NAME [cargo's arguments] -- [arguments of the test programs]

With the variable APP_HEALTH_TEST_FAILED, the failed tests are written to that file instead, so that
the lanes that run beside the suite can end first. More than flaky.MOST failures are not retried."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flaky
import libtest
import speed

LATER = "APP_HEALTH_TEST_FAILED"


def main(arguments):
    """Returns the exit code of the suite."""
    name, *rest = arguments
    end = rest.index("--") if "--" in rest else len(rest)
    cargo, options = rest[:end], rest[end + 1 :]
    programs = build(cargo)
    if programs is None:
        return 1
    speed.measure()
    failed, broken, counted = [], False, [0, 0, 0]
    for program in programs:
        output = run(program, options)
        outcome = libtest.outcome(output)
        if outcome is None:
            print(f"{program['executable']} ended before it counted its tests", flush=True)
            broken = True
            continue
        counted = [a + b for a, b in zip(counted, (outcome.passed, outcome.failed, outcome.ignored))]
        failed += [failure(name, program, options, test, output) for test in outcome.failures]
    print(f"{counted[0]} passed, {counted[1]} failed, {counted[2]} ignored", flush=True)
    if broken or len(failed) > flaky.MOST:
        return 1
    if failed and LATER in os.environ:
        Path(os.environ[LATER]).write_text(json.dumps(failed))
        return 1
    return int(not all([retry(test) for test in failed]))


def build(cargo):
    """Builds the test programs and returns them, or None if cargo fails."""
    command = ["cargo", "test", *cargo, "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if built.returncode != 0:
        return None
    messages = [json.loads(line) for line in built.stdout.splitlines() if line.startswith("{")]
    return [
        {
            "executable": message["executable"],
            "folder": str(Path(message["manifest_path"]).parent),
            "unit": "test" not in message["target"]["kind"],
        }
        for message in messages
        if message["reason"] == "compiler-artifact" and message["executable"] and message["profile"]["test"]
    ]


@contextlib.contextmanager
def temporary_files(program, environment):
    """Unit tests write to a folder that is removed after them. Other tests have one in target/, and short paths of
    sockets in the folder of the system."""
    if not program["unit"]:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="unit-", ignore_cleanup_errors=True) as folder:
        environment["TMPDIR"] = folder
        yield


def run(program, options):
    """Runs a test program in the folder of its crate, as cargo does, prints its output and returns it."""
    # The stable test harness reports times only with this variable. It is not set for cargo, which
    # would compile dependencies again.
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": program["folder"]}
    command = [program["executable"], *options, "-Z", "unstable-options", "--report-time"]
    lines = []
    with temporary_files(program, environment), subprocess.Popen(
        command, cwd=program["folder"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as child:
        for raw in child.stdout:
            line = raw.decode(errors="replace")
            lines.append(line)
            print(line, end="", flush=True)
    return "".join(lines)


def failure(suite, program, options, test, output):
    """Returns what a later retry needs, and writes the output of the suite to its log."""
    log = flaky.RUNS / f"{suite}-{test.replace('::', '-')}.log".replace(" ", "-")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(output)
    seconds = libtest.seconds(output, test)
    return {"suite": suite, "program": program, "options": options, "test": test, "seconds": seconds, "log": str(log)}


def retry(failed):
    """Runs a failed test once more, alone. Returns whether it passed."""
    print(f"once more, alone: {failed['suite']} {failed['test']}", flush=True)
    begin = time.monotonic()
    output = run(failed["program"], libtest.alone(failed["options"], failed["test"]))
    seconds = time.monotonic() - begin
    with open(failed["log"], "a") as log:
        log.write(f"\n== once more, alone\n{output}")
    outcome = libtest.outcome(output)
    passed = outcome is not None and (outcome.passed, outcome.failed) == (1, 0)
    if passed:
        flaky.add(failed["suite"], failed["test"], failed["seconds"], seconds, failed["log"])
    return passed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
