"""What the output of a Rust test program says."""

import re
from dataclasses import dataclass

COUNTS = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)
# With --report-time. A test that prints with --nocapture may have separated the name from the result.
TIMED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. .*?(?:ok|FAILED) <(\d+\.\d+)s>", re.MULTILINE)
# Options that a test needs to run alone as it ran before.
KEPT_OPTIONS = {"--ignored", "--include-ignored", "--nocapture"}


@dataclass(frozen=True)
class Outcome:
    """passed, failed, ignored: numbers of tests; failures: the names of the failed ones, sorted."""

    passed: int
    failed: int
    ignored: int
    failures: tuple


def outcome(output):
    """Returns the Outcome of a test program, or None if it ended before it counted its tests."""
    counts = COUNTS.findall(output)
    if not counts:
        return None
    passed, failed, ignored = (int(number) for number in counts[-1])
    return Outcome(passed, failed, ignored, tuple(sorted(_failures(output))) if failed else ())


def seconds(output, test):
    """Returns how long a test took, in seconds, or None if the output does not say so."""
    return next((float(took) for name, took in reversed(TIMED.findall(output)) if name == test), None)


def alone(arguments, test):
    """Returns the arguments with which a test program runs only this test."""
    kept = [argument for argument in arguments if argument in KEPT_OPTIONS]
    return ["--exact", test, *kept, "--test-threads", "1"]


def _failures(output):
    """Returns the names in the last list of failures, one on each indented line."""
    _, _, after = output.rpartition("\nfailures:\n")
    for line in after.splitlines():
        if not line.startswith("    "):
            return
        yield line.strip()
