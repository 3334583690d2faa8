"""Writes the tables of docs/benchmarks.md from target/bench/<area>.json.

A table stands between `<!-- AREA -->` and `<!-- end -->`. Tables of areas without a JSON file, which
were not measured on this machine, stay as they are. `./justw bench-page` calls this program.
"""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"


def figure(value, unit):
    """Three significant digits, and no decimals from 100 on: `1.14`, `468 us`."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text if unit == "ratio" else f"{text} {unit}"


def table(rows):
    lines = ["| figure | measured | bar |", "| --- | --- | --- |"]
    for row in rows:
        bar = "" if row["bar"] is None else figure(row["bar"], row["unit"])
        name = row["name"] if row["holds"] is not False else f"{row['name']} (**not met**)"
        lines.append(f"| {name} | {figure(row['value'], row['unit'])} | {bar} |")
    return "\n".join(lines)


def section(match):
    file = ROOT / "target" / "bench" / f"{match[1]}.json"
    if not file.exists():
        print(f"{match[1]}: {file.relative_to(ROOT)} is missing, the table stays as it is")
        return match[0]
    return f"<!-- {match[1]} -->\n{table(json.loads(file.read_text()))}\n<!-- end -->"


text = PAGE.read_text()
PAGE.write_text(re.sub(r"<!-- ([a-z-]+) -->\n.*?\n<!-- end -->", section, text, flags=re.S))
