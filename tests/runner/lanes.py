"""Runs recipes in lanes.

Each argument is a lane. Its recipes are separated by semicolons and run one after another; all lanes
run at the same time, because tests wait more than they compute. Prints a line for each recipe, with
what its test runner counted, what could not be tested on this machine, and the output of those that
failed. When all lanes have ended, the tests that failed are run once more, alone; see suite.py."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import flaky
import speed
import suite

LOGS = Path("target/test-logs")
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) ignored$", re.MULTILINE)


@dataclass
class Recipe:
    """A recipe that was run. failed: None if it runs no suite, otherwise the failed tests to retry."""

    command: str
    passed: bool
    seconds: float
    log: Path
    failed: list = field(default=None)

    @property
    def name(self):
        return self.command.removeprefix("_")

    def output(self):
        return self.log.read_text(errors="replace")


def run(command):
    """Runs a recipe and returns it."""
    name = command.removeprefix("_").replace(" ", "-")
    log, later = LOGS / f"{name}.log", LOGS / f"{name}.failed"
    later.unlink(missing_ok=True)
    begin = time.monotonic()
    with log.open("wb") as out:
        passed = 0 == subprocess.call(
            ["just", *command.split()],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, suite.LATER: str(later.absolute())},
        )
    failed = json.loads(later.read_text()) if later.exists() else None
    return Recipe(command, passed, time.monotonic() - begin, log, failed)


def counted(output):
    """Returns the sum of what suites counted, or the last line of a recipe that runs none."""
    counts = [[int(number) for number in found] for found in COUNTS.findall(output)]
    if not counts:
        return (output.splitlines() or [""])[-1]
    passed, failed, ignored = (sum(column) for column in zip(*counts))
    return f"{passed} passed, {failed} failed, {ignored} ignored"


def report(recipe):
    """Prints the line of a recipe, and below it what was not tested, or the output of a failure."""
    output = recipe.output()
    result = "ok" if recipe.passed else "FAILED"
    lines = [f"{result:<8} {recipe.name:<22} {recipe.seconds:4.0f} s  {counted(output)}"]
    if recipe.passed:
        lines += [line for line in output.splitlines() if "NOT TESTED" in line]
    else:
        lines += [f"    {line}" for line in output.splitlines()]
    print("\n".join(lines), flush=True)


def lane(recipes, done):
    """Runs the recipes of a lane and appends them to `done`."""
    for command in recipes.split(";"):
        recipe = run(command.strip())
        report(recipe)
        done.append(recipe)


def once_more(recipe):
    """Runs what failed in a recipe once more. Returns whether it passed."""
    if recipe.failed is not None:
        return all([suite.retry(test) for test in recipe.failed])
    if COUNTS.search(recipe.output()) or "error: could not compile" in recipe.output():
        return False
    print(f"once more, alone: {recipe.name}", flush=True)
    kept = recipe.log.with_suffix(".first.log")
    recipe.log.rename(kept)
    again = run(recipe.command)
    report(again)
    if again.passed:
        flaky.add(recipe.name, "(the whole recipe)", recipe.seconds, again.seconds, kept)
    return again.passed


def main(lanes):
    """Returns the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    speed.measure()
    done = []
    threads = [threading.Thread(target=lane, args=(recipes, done)) for recipes in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failed = [recipe for recipe in done if not recipe.passed]
    before = len(flaky.entries())
    passed = all([once_more(recipe) for recipe in failed])
    for entry in flaky.entries()[before:]:
        print(flaky.line(entry), flush=True)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
