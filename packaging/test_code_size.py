"""Tests of code_size.py."""

import tempfile
import unittest
from pathlib import Path

import code_size


class CodeSize(unittest.TestCase):
    def test_counts_product_lines_only(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            members = '["a", "tests/b", "demo"]'
            (root / "Cargo.toml").write_text(f"[workspace]\nmembers = {members}\n")
            for name, text in [
                ("a/build.rs", "1\n"),
                ("a/src/lib.rs", "1\n2\n"),
                ("a/src/x/y.rs", "1\n\n3"),
                ("a/src/x/tests.rs", "1\n"),
                ("a/src/x/tests/z.rs", "1\n"),
                ("a/src/page.html", "1\n"),
            ]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            self.assertEqual(code_size.crates(root), ["a"])
            self.assertEqual(code_size.lines(root / "a"), 6)

    def test_names_crates_and_exceptions_that_are_too_large(self):
        sizes = {"a": 9_001, "b": 12_000, "c": 9_000, "d": 10_000, "e": 10_000}
        exceptions = {"b": 11_999, "c": 9_500, "d": 10_200, "e": 10_201}
        found = [text.split(":")[0] for text in code_size.faults(sizes, exceptions)]
        self.assertEqual(
            found,
            [
                "a has 9001 lines, more than 9000",
                "b has 12000 lines, more than 11999",
                "c has 9000 lines",
                "e has 10000 lines",
            ],
        )
