"""Combines the lists that cargo-cyclonedx made of the crates of a binary, and compares the result with what
`cargo tree` says is compiled into it and with Cargo.lock, which has the checksums.

cargo-cyclonedx also lists optional dependencies that no feature enables, so crates that `cargo tree` lacks
are left out. Every crate that it has must be in the list.

Only Python's standard library is used.
"""

import argparse
import hashlib
import json
import re
import tomllib
from pathlib import Path


class Mismatch(Exception):
    """The list disagrees with `cargo tree` or with Cargo.lock."""


def locked(text):
    """Returns the packages of a Cargo.lock: (name, version) -> checksum, None for those of the workspace."""
    packages = tomllib.loads(text)["package"]
    return {(package["name"], package["version"]): package.get("checksum") for package in packages}


def built(text):
    """Returns the crates, (name, version), in the output of `cargo tree --prefix none --format {p}`."""
    crates = (line.split() for line in text.splitlines() if line)
    return {(words[0], words[1].removeprefix("v")) for words in crates}


def combine(documents, crates, sources):
    """Returns the components and dependencies of all documents, once each, sorted by reference, and the
    references of the documents' roots. The root of the sources is not part of any reference. Raises Mismatch
    if one of the crates that are compiled is in no document.
    """
    components, dependencies, top = {}, {}, []
    for document in documents:
        text = json.dumps(document).replace(f"file://{sources}", "file:///app-health")
        document = json.loads(text)
        root = document["metadata"]["component"]
        top.append(root["bom-ref"])
        for component in [root, *document.get("components", [])]:
            if (component["name"], component["version"]) in crates:
                component = {key: value for key, value in component.items() if key != "components"}
                component["type"] = "library"
                components[component["bom-ref"]] = component
        for dependency in document.get("dependencies", []):
            found = dependencies.setdefault(dependency["ref"], set())
            found.update(dependency.get("dependsOn", []))
    missing = crates - {(component["name"], component["version"]) for component in components.values()}
    if missing:
        raise Mismatch(f"cargo-cyclonedx does not list {sorted(missing)}")
    edges = [
        {"ref": ref, "dependsOn": sorted(names & components.keys())}
        for ref, names in sorted(dependencies.items())
        if ref in components
    ]
    return [components[ref] for ref in sorted(components)], edges, top


def add_checksums(components, packages):
    """Adds the checksum of Cargo.lock to each crate. Raises Mismatch for a crate that is not in it."""
    for component in components:
        key = (component["name"], component["version"])
        if key not in packages:
            raise Mismatch(f"{key[0]} {key[1]} is not in Cargo.lock")
        if packages[key] is not None:
            component["hashes"] = [{"alg": "SHA-256", "content": packages[key]}]


def describe(name, version, digest, timestamp, components, edges, top):
    """Returns the CycloneDX document of a binary, which depends on the crates `top`."""
    reference = f"{name}@{version}"
    root = {
        "type": "application",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "licenses": [{"expression": "Apache-2.0"}],
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": timestamp, "component": root},
        "components": components,
        "dependencies": [{"ref": reference, "dependsOn": top}, *edges],
    }


def with_members(manifest, members):
    """Returns the manifest of the workspace with these members instead of its own."""
    names = ", ".join(json.dumps(member) for member in members)
    replaced, count = re.subn(r"(?ms)^members = \[.*?\]$", f"members = [{names}]", manifest)
    if count != 1:
        raise Mismatch("Cargo.toml has no list of members")
    return replaced


def write_combined(arguments):
    documents = [json.loads(file.read_text()) for file in arguments.lists]
    crates = set().union(*(built(file.with_suffix(".tree").read_text()) for file in arguments.lists))
    components, edges, top = combine(documents, crates, arguments.sources)
    add_checksums(components, locked(arguments.lock.read_text()))
    first = documents[0]["metadata"]
    digest = hashlib.sha256(arguments.binary.read_bytes()).hexdigest()
    document = describe(
        arguments.component, first["component"]["version"], digest, first["timestamp"], components, edges, top
    )
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    members = commands.add_parser("members", help="reduce a workspace to these members and what they need")
    members.add_argument("--manifest", required=True, type=Path)
    members.add_argument("members", nargs="+")
    members.set_defaults(
        run=lambda arguments: arguments.manifest.write_text(
            with_members(arguments.manifest.read_text(), arguments.members)
        )
    )
    combined = commands.add_parser("combine", help="write the list of a binary")
    combined.add_argument("--component", required=True, help="name of the binary in the list")
    combined.add_argument("--binary", required=True, type=Path)
    combined.add_argument("--sources", required=True, help="root of the sources that the lists name")
    combined.add_argument("--lock", required=True, type=Path, help="Cargo.lock")
    combined.add_argument("--output", required=True, type=Path)
    combined.add_argument("lists", nargs="+", type=Path, help="of cargo-cyclonedx; NAME.tree beside NAME.json is of cargo tree")
    combined.set_defaults(run=write_combined)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
