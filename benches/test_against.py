"""Tests of the comparison of two versions, run by `./justw unit`."""

import unittest

import against


def rounds(*values, name="p50", unit="ms"):
    return [{name: {"value": value, "unit": unit}} for value in values]


class Compare(unittest.TestCase):
    def verdict(self, old, new):
        (figure,) = against.compare(old, new)
        return figure["verdict"]

    def test_worse_is_above_every_value_of_the_older_version(self):
        self.assertEqual(self.verdict(rounds(1.0, 1.1), rounds(1.14, 1.5)), "worse")
        self.assertEqual(self.verdict(rounds(1.0, 1.1), rounds(1.13, 1.5)), "")
        self.assertEqual(self.verdict(rounds(0, 0), rounds(1, 1)), "worse")

    def test_better_is_below_every_value_of_the_older_version(self):
        self.assertEqual(self.verdict(rounds(1.0, 1.1), rounds(0.5, 0.96)), "better")
        self.assertEqual(self.verdict(rounds(1.0, 1.1), rounds(0.5, 0.98)), "")

    def test_equal_and_negative(self):
        self.assertEqual(self.verdict(rounds(0), rounds(0)), "")
        self.assertEqual(self.verdict(rounds(-1.0), rounds(-0.99)), "")
        self.assertEqual(self.verdict(rounds(-1.0), rounds(-0.9)), "worse")

    def test_units_without_a_worse_direction(self):
        for unit in against.NEUTRAL_UNITS:
            self.assertEqual(self.verdict(rounds(1, unit=unit), rounds(9, unit=unit)), "")

    def test_figures_of_one_version_only(self):
        self.assertEqual(self.verdict(rounds(1), rounds(9, name="p99")), "")
        (figure,) = against.compare(rounds(1), rounds(9, name="p99"))
        self.assertEqual(against.line(figure), "| p99 |  | 9 ms |  |  |")

    def test_line(self):
        (figure,) = against.compare(rounds(2, 4, 3), rounds(6, 5, 7))
        self.assertEqual(against.line(figure), "| p50 | 3 ms | 6 ms | 2.000 | worse |")


if __name__ == "__main__":
    unittest.main()
