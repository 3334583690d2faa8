"""Lists each bar that held in the committed docs/benchmarks.md and holds no longer in target/bench.

`./justw bench all` calls this program after all areas were measured. The exit code is 1 if there is
such a bar. A bar that is no longer measured counts too, so that a renamed figure is not lost.
"""

import subprocess
import sys

import page


def held_bars(text):
    """Maps each area of the page to its figures whose bar held, with the bar as it is written."""
    held = {}
    for area, table in page.SECTION.findall(text):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        held[area] = {name: bar for name, _, bar in rows if bar and not name.endswith(page.NOT_MET)}
    return held


def lost_bars(held, results):
    """A line for each bar that held; `results` has the rows of each area, None if it has none."""
    lost = []
    for area, bars in held.items():
        rows = {row["name"]: row for row in results[area] or []}
        for name, bar in bars.items():
            row = rows.get(name)
            if row is None:
                lost.append(f"{area}: {name}: not measured; the page has the bar {bar}")
            elif row["bar"] is None:
                lost.append(f"{area}: {name}: has no bar; the page has the bar {bar}")
            elif page.figure(row["bar"], row["unit"]) != bar:
                lost.append(f"{area}: {name}: has the bar {page.figure(row['bar'], row['unit'])}; the page has {bar}")
            elif not row["holds"]:
                measured, bar = (page.figure(row[key], row["unit"]) for key in ("value", "bar"))
                lost.append(f"{area}: {name}: {measured} is more than {bar}")
    return lost


def main():
    command = ["git", "-C", page.ROOT, "show", f"HEAD:{page.PAGE}"]
    held = held_bars(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    lost = lost_bars(held, {area: page.results(area) for area in held})
    for line in lost:
        print(line)
    total = sum(len(bars) for bars in held.values())
    print(f"{len(lost)} of {total} bars that held in the committed {page.PAGE} hold no longer")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
