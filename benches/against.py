"""Measures an area with the programs of an older version and with those of this one in turn, and compares.

`./justw bench-against REVISION AREA` calls this program. The older version is checked out and built below
target/against, and uses this checkout's .tools. Each round runs the benchmark of this version with both
sets of programs; which one is first alternates. A figure is worse if its lowest value of all rounds is more
than 3 % above the highest one of the older version, so that noise alone seldom makes it worse; the exit
code is then 1. The values go to target/bench/against-AREA.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

import page

TOLERANCE = 0.03
# More of these is not worse, or they describe the machine.
NEUTRAL_UNITS = {"/s", "rounds", "%"}
FOLDER = page.ROOT / "target" / "against"
FILTER = "target/wasm32-unknown-unknown/wasm/app_health_filter.wasm"
# The recipes that build what an area runs.
BUILDS = {
    "agent": ["release"],
    "filter": ["wasm"],
    "injector": ["release-control-plane"],
    "pages": ["release", "release-control-plane"],
    "probe": ["wasm", "module", "release-vm"],
    "vm-health": ["release-vm", "release-control-plane"],
    "xds-proxy": ["release-vm"],
}


def check_out(revision):
    """The folder of the checkout of `revision`, made if it does not exist yet."""
    git = ["git", "-C", page.ROOT]
    command = [*git, "rev-parse", "--verify", "--short=12", f"{revision}^{{commit}}"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    folder = FOLDER / commit
    if not folder.exists():
        subprocess.run([*git, "worktree", "prune"], check=True)
        subprocess.run([*git, "worktree", "add", "--detach", folder, commit], check=True)
        (folder / ".tools").symlink_to(page.ROOT / ".tools")
    return folder


def just(*arguments, cwd=page.ROOT, **variables):
    subprocess.run(["./justw", *arguments], cwd=cwd, check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, **variables})


def measure(checkout, area, arguments):
    """The rows of an area with the programs of a checkout: name to row."""
    file = page.ROOT / "target" / "bench" / f"{area}.json"
    file.unlink(missing_ok=True)
    variables = {"APP_HEALTH_TEST_CHECKOUT": str(checkout)}
    # The build of the agent reads the variable too, and would begin anew whenever it changes.
    if area == "filter":
        variables["APP_HEALTH_BUILD_FILTER"] = str(checkout / FILTER)
    just("bench", area, *arguments, **variables)
    return {row["name"]: row for row in json.loads(file.read_text())}


def compare(old, new):
    """Compares two lists of rounds, each name to row. Returns for each figure of the newest round its
    name, unit, both lists of values, and "worse", "better" or ""."""
    figures = []
    for name, row in new[-1].items():
        before, after = ([rows[name]["value"] for rows in rounds if name in rows] for rounds in (old, new))
        figures.append({"name": name, "unit": row["unit"], "old": before, "new": after,
                        "verdict": verdict(before, after, row["unit"])})
    return figures


def verdict(before, after, unit):
    if not before or unit in NEUTRAL_UNITS:
        return ""
    if min(after) > max(before) + TOLERANCE * abs(max(before)):
        return "worse"
    if max(after) < min(before) - TOLERANCE * abs(min(before)):
        return "better"
    return ""


def line(figure):
    old, new = (statistics.median(figure[key]) if figure[key] else None for key in ("old", "new"))
    ratio = f"{new / old:.3f}" if old else ""
    old, new = ("" if value is None else page.figure(value, figure["unit"]) for value in (old, new))
    return f"| {figure['name']} | {old} | {new} | {ratio} | {figure['verdict']} |"


def main():
    parser = argparse.ArgumentParser(prog="bench-against", description=__doc__.splitlines()[0])
    parser.add_argument("revision", help="the older version: a commit, tag or branch")
    parser.add_argument("area", choices=BUILDS, help="an area of ./justw bench")
    parser.add_argument("--times", type=int, default=3, help="how often each version is measured")
    options, arguments = parser.parse_known_args()
    older = check_out(options.revision)
    for recipe in BUILDS[options.area]:
        just(recipe, cwd=older)
    rounds = {older: [], page.ROOT: []}
    for number in range(options.times):
        for checkout in sorted(rounds, reverse=number % 2 == 1):
            rounds[checkout].append(measure(checkout, options.area, arguments))
    figures = compare(rounds[older], rounds[page.ROOT])
    (page.ROOT / "target" / "bench" / f"against-{options.area}.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(f"| figure | {options.revision} | now | now / {options.revision} | |\n| --- | --- | --- | --- | --- |")
    for figure in figures:
        print(line(figure))
    worse = sum(figure["verdict"] == "worse" for figure in figures)
    print(f"{worse} of {len(figures)} figures worse; medians of {options.times} rounds of each version")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
