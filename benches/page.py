"""Writes the tables of docs/benchmarks.md from target/bench/<area>.json.

A table stands between `<!-- AREA -->` and `<!-- end -->`. Tables of areas without a JSON file, which
were not measured on this machine, stay as they are. `./justw bench-page` calls this program.
"""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = "docs/benchmarks.md"
SECTION = re.compile(r"<!-- ([a-z-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
NOT_MET = " (**not met**)"


def results(area):
    """The rows that `./justw bench AREA` has written; None if it was not measured."""
    file = ROOT / "target" / "bench" / f"{area}.json"
    return json.loads(file.read_text()) if file.exists() else None


def figure(value, unit):
    """Three significant digits, and no decimals from 100 on: `1.14`, `468 us`."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text if unit in ("", "ratio") else f"{text} {unit}"


def table(rows):
    lines = ["| figure | measured | bar |", "| --- | --- | --- |"]
    for row in rows:
        bar = "" if row["bar"] is None else figure(row["bar"], row["unit"])
        name = row["name"] if row["holds"] is not False else row["name"] + NOT_MET
        lines.append(f"| {name} | {figure(row['value'], row['unit'])} | {bar} |")
    return "\n".join(lines)


def write(text):
    """The page with the table of each area that was measured."""

    def section(match):
        rows = results(match[1])
        if rows is None:
            print(f"{match[1]}: no results, the table stays as it is")
            return match[0]
        return f"<!-- {match[1]} -->\n{table(rows)}\n<!-- end -->"

    return SECTION.sub(section, text)


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(write(page.read_text()))
