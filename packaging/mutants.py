"""Changes the code in one place at a time with cargo-mutants, and prints for each crate how many of the
changes a test notices. Fails if one that no test notices is not in mutants-accepted.toml, or is there but
does not exist or is noticed."""

import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = ROOT / "packaging/mutants-accepted.toml"
# At a fixed path, so that cargo builds only what has changed since the last run.
TREE = ROOT / "target/mutants/tree"
# Seconds after which a test is taken for one that does not end, which counts as noticed: more than any test needs
# on a busy machine.
TIMEOUT = 60
# Percentage of mutants that a test must notice.
BAR = 90

# What is mutated: the crate with its unit tests, or only the files with its limits.
CRATES = {
    "pacing": [],
    "probe": [],
    "workload-health": [],
    "discovery": [],
    "xds-proxy": [],
    "injector": [],
    # The form for proxy-wasm does not compile natively; tests/filter tests it.
    "filter": ["--exclude=filter/src/wasm.rs", "--exclude=filter/src/wasm/**"],
    "serving": [
        "--all-features",
        "--file=serving/src/shared_pool.rs",
        "--file=serving/src/source_permits.rs",
        "--file=serving/src/local_request.rs",
        "--file=serving/src/log_limiter.rs",
        "--file=serving/src/http_server/activity.rs",
        "--file=serving/src/http_server/connection.rs",
        "--file=serving/src/http_server/connections.rs",
        "--file=serving/src/http_server/listener.rs",
        "--file=serving/src/grpc/**",
    ],
    "control-plane": [
        "--file=control-plane/src/webhook/authority.rs",
        "--file=control-plane/src/webhook/handler.rs",
        "--file=control-plane/src/webhook/json_values.rs",
        "--file=control-plane/src/webhook/review_log.rs",
    ],
}


def copy_tree():
    """Copies what git knows or would add to TREE. Files that are equal keep their time."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}
    for file in [file for file in TREE.rglob("*") if file.is_file()]:
        if str(file.relative_to(TREE)) not in names:
            file.unlink()
    for name in names:
        source, target = ROOT / name, TREE / name
        if not target.is_file() or source.read_bytes() != target.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def run(program, crate, options):
    """Runs cargo-mutants and returns its outcomes as pairs of a mutant's name and what became of it."""
    output = ROOT / "target/mutants" / crate
    command = [program, "mutants", "--in-place", f"--dir={TREE}", f"--package={crate}", *CRATES[crate]]
    command += [f"--output={output}", "--colors=never", f"--minimum-test-timeout={TIMEOUT}"]
    command += ["--cargo-arg=--lib", *options]
    # The same random cases in each run; line numbers of panics are not needed.
    environment = {**os.environ, "PROPTEST_RNG_SEED": "1", "CARGO_PROFILE_DEV_DEBUG": "0"}
    ended = subprocess.run(command, cwd=TREE, env=environment)
    if ended.returncode not in (0, 2, 3):
        sys.exit(f"cargo-mutants failed for {crate}: do its tests pass?")
    return outcomes(json.loads((output / "mutants.out/outcomes.json").read_text()))


def outcomes(report):
    mutants = [outcome for outcome in report["outcomes"] if "Mutant" in outcome["scenario"]]
    return [(name(outcome["scenario"]["Mutant"]["name"]), outcome["summary"]) for outcome in mutants]


def name(mutant):
    """Removes the line and the column, which change with each edit of the file."""
    return re.sub(r":\d+:\d+: ", ": ", mutant, count=1)


def row(crate, found, accepted):
    """Returns a row of the table, and the percentage of the mutants that a test notices."""
    count = collections.Counter(summary for _, summary in found)
    killed, missed = count["CaughtMutant"] + count["Timeout"], count["MissedMutant"]
    percent = 100 * killed / max(killed + missed, 1)
    cells = (killed + missed, killed, f"{percent:.1f} %", count["Timeout"], count["Unviable"], missed, accepted)
    return f"{crate:<16}" + "".join(f"{cell:>10}" for cell in cells), percent


HEAD = f"{'crate':<16}" + "".join(
    f"{cell:>10}" for cell in ("mutants", "killed", "percent", "timeouts", "unviable", "survived", "accepted")
)


def faults(found, accepted, is_whole):
    """Compares survivors with the accepted ones. A name can be there several times: one for each place in
    its function. A part of the mutants says nothing about an accepted one that is not among the survivors."""
    survived = collections.Counter(name for name, summary in found if summary == "MissedMutant")
    if not is_whole:
        return [f"survived: {name}" for name in sorted(survived) if name not in accepted]
    new = (survived - collections.Counter(accepted)).elements()
    old = (collections.Counter(accepted) - survived).elements()
    texts = [f"accepted, but killed or absent: {name}" for name in sorted(old)]
    return [f"survived: {name}" for name in sorted(new)] + texts


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=lambda path: Path(path).absolute(), help="path of cargo-mutants")
    parser.add_argument("crates", nargs="*", metavar="CRATE", help=f"of {', '.join(CRATES)}; all by default")
    parser.add_argument("--shard", metavar="K/N", help="only one of N parts of each crate's mutants")
    parser.add_argument("--in-diff", metavar="FILE", type=Path, help="only mutants in code that a diff changes")
    given = parser.parse_args(arguments)
    if unknown := set(given.crates) - set(CRATES):
        parser.error(f"unknown crate {min(unknown)}")
    options = ["--shard", given.shard] if given.shard else []
    options += ["--in-diff", str(given.in_diff.resolve())] if given.in_diff else []
    accepted = tomllib.loads(ACCEPTED.read_text())
    copy_tree()
    rows, found_faults = [HEAD], []
    for crate in given.crates or CRATES:
        found = run(given.program, crate, options)
        of_crate = [entry["mutant"] for entry in accepted.get(crate, [])]
        text, percent = row(crate, found, len(of_crate))
        rows.append(text)
        found_faults += faults(found, of_crate, not options)
        if percent < BAR and not options:
            found_faults.append(f"{crate}: tests notice {percent:.1f} % of the mutants, fewer than {BAR} %")
    print("\n".join(rows))
    print("\n".join(found_faults), file=sys.stderr)
    return 1 if found_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
