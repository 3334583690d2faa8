"""Tests of the page and of the comparison with it, run by `./justw unit`."""

import unittest
from unittest import mock

import lost_bars
import page


def row(name, value, unit="ms", bar=None):
    return {"name": name, "value": value, "unit": unit, "bar": bar, "holds": None if bar is None else value <= bar}


ROWS = [row("p50", 0.5), row("p99", 1.5, bar=2), row("p99 / echo", 12.0, "ratio", bar=5)]
TABLE = """\
| figure | measured | bar |
| --- | --- | --- |
| p50 | 0.5 ms |  |
| p99 | 1.5 ms | 2 ms |
| p99 / echo (**not met**) | 12 | 5 |"""
TEXT = f"# Page\n\n<!-- probe -->\n{TABLE}\n<!-- end -->\n\ntext\n\n<!-- vm-health -->\nold\n<!-- end -->\n"


class Page(unittest.TestCase):
    def test_figures(self):
        for value, unit, text in [
            (1.1449, "ratio", "1.14"),
            (468.2, "us", "468 us"),
            (20000, "bytes", "20,000 bytes"),
            (0, "", "0"),
            (-0.1234, "ms", "-0.123 ms"),
        ]:
            self.assertEqual(page.figure(value, unit), text)

    def test_table(self):
        self.assertEqual(page.table(ROWS), TABLE)

    def test_an_empty_table_does_not_reach_into_the_next(self):
        text = f"<!-- vm-health -->\n<!-- end -->\n\ntext\n\n{TEXT}"
        with mock.patch.object(page, "results", {}.get), mock.patch("builtins.print"):
            self.assertEqual(page.write(text), text)
        self.assertEqual(lost_bars.held_bars(text)["probe"], {"p99": "2 ms"})

    def test_areas_without_results_stay(self):
        with mock.patch.object(page, "results", {"vm-health": ROWS}.get), mock.patch("builtins.print"):
            self.assertEqual(page.write(TEXT), TEXT.replace("old", TABLE))


class LostBars(unittest.TestCase):
    def check(self, rows, *lost):
        held = lost_bars.held_bars(TEXT)
        self.assertEqual(lost_bars.lost_bars(held, {"probe": rows, "vm-health": None}), list(lost))

    def test_held_bars(self):
        self.assertEqual(lost_bars.held_bars(TEXT), {"probe": {"p99": "2 ms"}, "vm-health": {}})

    def test_same_results(self):
        self.check(ROWS)

    def test_new_figures_and_bars_that_never_held(self):
        self.check([*ROWS, row("new", 3, bar=1)])

    def test_bar_no_longer_holds(self):
        self.check([row("p99", 2.5, bar=2)], "probe: p99: 2.5 ms is more than 2 ms")

    def test_bar_is_gone(self):
        self.check([row("p99", 1.5)], "probe: p99: has no bar; the page has the bar 2 ms")

    def test_bar_has_changed(self):
        self.check([row("p99", 1.5, bar=3)], "probe: p99: has the bar 3 ms; the page has 2 ms")

    def test_figure_is_gone(self):
        self.check([row("p99.9", 1.5, bar=2)], "probe: p99: not measured; the page has the bar 2 ms")
        self.check(None, "probe: p99: not measured; the page has the bar 2 ms")


if __name__ == "__main__":
    unittest.main()
