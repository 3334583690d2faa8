"""Prints the lines of each crate that ships, without its tests, and how many files and forms the health of a
virtual machine passes. With --check it fails if a crate is too large or that list is out of date."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 9_000
FLOW = "packaging/vm-health-flow.toml"
DO_NOT_SHIP = ("benches", "demo", "demo-vm", "packaging", "tests")
NOT_PRODUCT = ("benches", "target", "testdata", "tests")


def crates(root):
    """Returns the folders of the crates that ship."""
    members = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["members"]
    return [member for member in members if member.split("/")[0] not in DO_NOT_SHIP]


def lines(crate):
    """Returns the number of lines of the crate's Rust files, without unit tests."""
    total = 0
    for file in crate.rglob("*.rs"):
        folders = file.relative_to(crate).parts[:-1]
        if file.name != "tests.rs" and not set(folders) & set(NOT_PRODUCT):
            total += len(file.read_text().splitlines())
    return total


def faults(sizes):
    """Returns a text for each crate that is too large."""
    return [
        f"{name} has {size} lines, more than {MAX_LINES}: move code to another crate"
        for name, size in sizes.items()
        if size > MAX_LINES
    ]


def flow_faults(root, flow):
    """Returns a text for each file and form of the flow that does not exist."""
    missing = [file for file in flow["files"] if not (root / file).is_file()]
    text = "".join((root / file).read_text() for file in flow["files"] if file not in missing)
    unknown = [form for form in flow["forms"] if not re.search(rf"\b{form.split('::')[-1]}\b", text)]
    return [f"{FLOW}: {name} is not on the way any more" for name in missing + unknown]


def main(arguments):
    flow = tomllib.loads((ROOT / FLOW).read_text())
    sizes = {name: lines(ROOT / name) for name in crates(ROOT)}
    if "--check" not in arguments:
        width = max(map(len, sizes))
        for name, size in sorted(sizes.items(), key=lambda row: -row[1]):
            print(f"{name:<{width}} {size:>7,}")
        print(f"{'total':<{width}} {sum(sizes.values()):>7,}")
        print(f"health of a virtual machine: {len(flow['files'])} files, {len(flow['forms'])} forms")
    found = faults(sizes) + flow_faults(ROOT, flow)
    for text in found:
        print(text, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
