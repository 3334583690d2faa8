"""Tests of mutants.py."""

import unittest

import mutants

CAUGHT, MISSED, TIMEOUT, UNVIABLE = "CaughtMutant", "MissedMutant", "Timeout", "Unviable"


class Mutants(unittest.TestCase):
    def test_names_do_not_change_with_lines(self):
        report = {
            "outcomes": [
                {"scenario": "Baseline", "summary": "Success"},
                {"scenario": {"Mutant": {"name": "a/src/b.rs:8:5: replace a::b -> c with d"}}, "summary": MISSED},
            ]
        }
        self.assertEqual(mutants.outcomes(report), [("a/src/b.rs: replace a::b -> c with d", MISSED)])

    def test_survivors_and_accepted_ones_must_be_equal(self):
        found = [("a", MISSED), ("a", MISSED), ("b", CAUGHT), ("c", MISSED), ("d", TIMEOUT)]
        self.assertEqual(mutants.faults(found, ["a", "a", "c"], True), [])
        self.assertEqual(mutants.faults(found, ["a", "c"], True), ["survived: a"])
        texts = [f"accepted, but killed or absent: {name}" for name in ("b", "e")]
        self.assertEqual(mutants.faults(found, ["a", "a", "b", "c", "e"], True), texts)

    def test_a_part_of_the_mutants_needs_no_accepted_one(self):
        self.assertEqual(mutants.faults([("a", MISSED), ("b", CAUGHT)], ["a", "c"], False), [])
        self.assertEqual(mutants.faults([("a", MISSED)], ["c"], False), ["survived: a"])

    def test_a_row_counts_timeouts_as_killed_and_no_unviable_ones(self):
        found = [("a", MISSED), ("b", CAUGHT), ("c", TIMEOUT), ("d", CAUGHT), ("e", UNVIABLE)]
        text, percent = mutants.row("x", found, 1)
        self.assertEqual(percent, 75)
        self.assertEqual(text.split(), ["x", "4", "3", "75.0", "%", "1", "1", "1", "1"])


if __name__ == "__main__":
    unittest.main()
