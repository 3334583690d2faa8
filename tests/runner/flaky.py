"""Tests that failed and then passed alone, in the last run: printed by `./justw flaky`.

A run lists them in target/test-runs/flaky.jsonl. The retry keeps a slow machine from failing a run;
each test in the list is to be mended. More than MOST of them fail the run (`--check`); where tests are
repeated in order to find them, a single one does (`--none`)."""

import json
import sys
from pathlib import Path

RUNS = Path("target/test-runs")
FLAKY = RUNS / "flaky.jsonl"
MOST = 3


def begin():
    """Begins a run: forgets the flaky tests of the previous one."""
    RUNS.mkdir(parents=True, exist_ok=True)
    FLAKY.unlink(missing_ok=True)


def add(suite, test, failed_after, passed_after, log):
    """Adds a test to the list; both durations are in seconds, the first may be unknown (None)."""
    entry = {"suite": suite, "test": test, "failed_after": failed_after, "passed_after": passed_after, "log": str(log)}
    RUNS.mkdir(parents=True, exist_ok=True)
    with FLAKY.open("a") as file:
        file.write(json.dumps(entry) + "\n")


def entries():
    """Returns the list of the last run."""
    return [json.loads(line) for line in FLAKY.read_text().splitlines()] if FLAKY.exists() else []


def line(entry):
    """Returns an entry as text."""
    failed = "?" if entry["failed_after"] is None else f"{entry['failed_after']:.1f}"
    return (
        f"flaky: {entry['suite']} {entry['test']}: failed after {failed} s, "
        f"passed alone after {entry['passed_after']:.1f} s, log: {entry['log']}"
    )


def main(arguments):
    """Prints the list and returns the exit code: 1 if it is longer than MOST with --check, or not empty
    with --none. With --begin, empties the list."""
    if arguments == ["--begin"]:
        begin()
        return 0
    found = entries()
    for entry in found:
        print(line(entry))
    print(f"{len(found)} flaky tests in the last run")
    most = {"--check": MOST, "--none": 0}
    return int(any(len(found) > most[argument] for argument in arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
