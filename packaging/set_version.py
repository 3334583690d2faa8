"""Sets the version of the next release: set_version.py VERSION.

It changes Cargo.toml, the lock files of cargo, the Helm chart, and where manifests, documents and tests repeat the
version. The page about upgrades also names the next patch version. tests/workspace/version.rs finds places
that this script does not.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEFORE = r"(?<![\w-])((?:app-health|app-health-control-plane|app-health-istio):|newTag: )"


def next_patch(version):
    """Returns 1.2.4 for 1.2.3."""
    major, minor, patch = version.split(".")
    return f"{major}.{minor}.{int(patch) + 1}"


def replaced(text, old, new):
    """Returns a document or manifest of version `old` as that of `new`."""
    versions = {old: new, next_patch(old): next_patch(new)}
    pattern = BEFORE + r"(" + "|".join(map(re.escape, versions)) + r")(?![\d.]*\d)"
    text = re.sub(pattern, lambda match: match[1] + versions[match[2]], text)
    # The command of the page about upgrades, where dots are escaped.
    command = "s/{}/{}/"
    escaped = lambda version: version.replace(".", r"\.")
    return text.replace(command.format(escaped(old), next_patch(old)), command.format(escaped(new), next_patch(new)))


def chart(text, old, new):
    """Returns Chart.yaml of version `old` as that of `new`."""
    return re.sub(rf'(?m)^((?:version|appVersion): "?){re.escape(old)}("?)$', rf"\g<1>{new}\g<2>", text)


def lock(text, old, new):
    """Returns a Cargo.lock whose packages without a source, those of this checkout, have version `new`."""
    pattern = rf'(?m)^(name = ".*"\nversion = "){re.escape(old)}"$(?!\nsource = )'
    return re.sub(pattern, rf'\g<1>{new}"', text)


def rewrite(file, change):
    text = file.read_text()
    changed = change(text)
    if changed != text:
        file.write_text(changed)
        print(file.relative_to(ROOT))


def main():
    [new] = sys.argv[1:]
    if not re.fullmatch(r"\d+\.\d+\.\d+", new):
        sys.exit(f"set-version: {new} is not like 1.2.3")
    manifest = ROOT / "Cargo.toml"
    old = re.search(r'(?m)^version = "(.*)"$', manifest.read_text())[1]
    rewrite(manifest, lambda text: re.sub(r'(?m)^version = ".*"$', f'version = "{new}"', text, count=1))
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md", "*.yaml", "*.rs", "*.injected"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if name != "CHANGELOG.md":
            rewrite(ROOT / name, lambda text: replaced(text, old, new))
    for file in ROOT.glob("charts/*/Chart.yaml"):
        rewrite(file, lambda text: chart(text, old, new))
    for file in [ROOT / "Cargo.lock", ROOT / "tests/fuzz/libfuzzer/Cargo.lock"]:
        rewrite(file, lambda text: lock(text, old, new))


if __name__ == "__main__":
    main()
