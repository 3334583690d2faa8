"""Tests of licenses.py."""

import unittest

import licenses

MIT = "Permission is hereby granted, free of charge, to any person"


class Licenses(unittest.TestCase):
    def test_each_text_is_printed_once(self):
        text = licenses.notice([("bytes 1.0.0", "MIT", [MIT]), ("tokio 1.0.0", "MIT", [MIT])])
        self.assertEqual(text.count(MIT), 1)
        self.assertIn("  bytes 1.0.0 (MIT)\n  tokio 1.0.0 (MIT)\n\nPermission", text)

    def test_a_crate_without_a_file_needs_the_text_of_its_license(self):
        text = licenses.notice([("bytes 1.0.0", "MIT", [MIT]), ("bare 2.0.0", "MIT OR Apache-2.0", [])])
        self.assertIn("below:\n\n  bare 2.0.0 (MIT OR Apache-2.0)", text)
        with self.assertRaisesRegex(LookupError, "bare 2.0.0"):
            licenses.notice([("bytes 1.0.0", "MIT", [MIT]), ("bare 2.0.0", "Apache-2.0", [])])

    def test_the_own_crates_are_left_out(self):
        own = {"bom-ref": "path+file:///app-health/probe#0.1.0", "name": "probe", "version": "0.1.0"}
        other = {"bom-ref": "registry#bytes@1", "name": "bytes", "version": "1", "licenses": [{"expression": "MIT"}]}
        self.assertEqual(licenses.crates({"components": [own, other]}), [("bytes", "1", "MIT")])


if __name__ == "__main__":
    unittest.main()
