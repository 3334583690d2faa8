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

    def test_names_crates_that_are_too_large(self):
        found = code_size.faults({"a": 9_001, "b": 9_000})
        self.assertEqual(found, ["a has 9001 lines, more than 9000: move code to another crate"])

    def test_a_flow_names_files_and_types_that_exist(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "a.rs").write_text("pub struct Report;")
            self.assertEqual(code_size.flow_faults(root, {"files": ["a.rs"], "forms": ["x::Report"]}), [])
            found = code_size.flow_faults(root, {"files": ["a.rs", "b.rs"], "forms": ["Repor"]})
            names = [text.split(": ")[1].split(" ")[0] for text in found]
            self.assertEqual(names, ["b.rs", "Repor"])
