"""Names processes of this checkout whose parent is init: a run that was killed has left them behind."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
INITS = ("systemd", "init", "docker-init", "tini")


def status(process):
    """Returns the fields of /proc/PID/status."""
    rows = (line.partition(":") for line in (process / "status").read_text(errors="replace").splitlines())
    return {name: value.strip() for name, _, value in rows}


def leftovers(proc, folders):
    """Returns the ids and programs of processes without a parent whose program is in one of these folders."""
    found = []
    for process in sorted(proc.glob("[0-9]*"), key=lambda process: int(process.name)):
        try:
            program = (process / "exe").readlink()
            parent = status(process)["PPid"]
            is_orphan = parent == "1" or status(proc / parent)["Name"] in INITS
        except OSError:
            # It has ended, or belongs to another user.
            continue
        if is_orphan and program.name != "just" and any(program.is_relative_to(folder) for folder in folders):
            found.append((process.name, program))
    return found


def main():
    for process, program in leftovers(Path("/proc"), [ROOT / "target", ROOT / ".tools"]):
        print(
            f"an earlier run that was killed has left a process behind: {process} {program} "
            f"(end it with: kill {process})",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
