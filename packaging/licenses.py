"""Prints the licenses of the crates of other authors in a binary, from its CycloneDX list and from the license
files in cargo's copies of the crates: licenses.py LIST.

Each text is printed once, after the crates that it comes with. A crate without such a file is named with its
license, whose text must be there from another crate.
"""

import json
import os
import re
import sys
from pathlib import Path

NAMES = re.compile(r"^(licen[cs]e|copying|notice|unlicense|copyright)", re.I)
# A phrase of each license's text.
PHRASES = {
    "Apache-2.0": "Apache License",
    "BSD-3-Clause": "Neither the name",
    "MIT": "Permission is hereby granted, free of charge",
}


def crates(listed):
    """Returns the crates of a registry in a list: (name, version, license expression)."""
    found = [
        (component["name"], component["version"], component["licenses"][0]["expression"])
        for component in listed["components"]
        if "/app-health" not in component["bom-ref"]
    ]
    return sorted(found)


def texts(folder):
    """Returns the license texts of a crate's folder."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and NAMES.match(file.name))
    return [file.read_text(errors="replace").strip() for file in files]


def notice(found):
    """Returns the document for [(crate, license expression, texts)]. Raises LookupError if there is no text
    for the license of a crate.
    """
    used = {}
    for crate, expression, contents in found:
        for text in contents:
            used.setdefault(text, []).append(f"{crate} ({expression})")
    parts = ["This program contains crates of other authors. Each license follows the crates that it comes with."]
    without = [(crate, expression) for crate, expression, contents in found if not contents]
    for crate, expression in without:
        known = [name for name in PHRASES if name in expression]
        if not any(PHRASES[name] in text for name in known for text in used):
            raise LookupError(f"no text for the license of {crate}: {expression}")
    if without:
        names = "\n".join(f"  {crate} ({expression})" for crate, expression in without)
        parts.append(f"These crates have no file with their license, whose text is below:\n\n{names}")
    for text, names in used.items():
        crates_of_text = "\n".join(f"  {name}" for name in names)
        parts.append(f"{'=' * 78}\n{crates_of_text}\n\n{text}")
    return "\n\n".join(parts) + "\n"


def main():
    listed = json.loads(Path(sys.argv[1]).read_text())
    registry = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry/src"
    found = []
    for name, version, expression in crates(listed):
        folder = next(registry.glob(f"*/{name}-{version}"))
        found.append((f"{name} {version}", expression, texts(folder)))
    print(notice(found), end="")


if __name__ == "__main__":
    main()
