"""Tests of set_version.py."""

import unittest

import set_version


class SetVersion(unittest.TestCase):
    def test_replaces_the_version_and_the_next_one(self):
        for old, new in [
            ("image: registry/app-health:0.1.0", "image: registry/app-health:0.2.0"),
            ("newTag: 0.1.0\n", "newTag: 0.2.0\n"),
            ("app-health-control-plane:0.1.0, then :0.1.1", "app-health-control-plane:0.2.0, then :0.1.1"),
            ("upgrade to app-health:0.1.1.", "upgrade to app-health:0.2.1."),
            (r"sed -i 's/0\.1\.0/0.1.1/' x", r"sed -i 's/0\.2\.0/0.2.1/' x"),
            ("app-health:0.1.01 and my-app-health:0.1.0", "app-health:0.1.01 and my-app-health:0.1.0"),
            ("Envoy 0.1.0", "Envoy 0.1.0"),
        ]:
            self.assertEqual(set_version.replaced(old, "0.1.0", "0.2.0"), new)

    def test_the_next_patch_can_become_the_version(self):
        text = set_version.replaced("app-health:0.1.0 app-health:0.1.1", "0.1.0", "0.1.1")
        self.assertEqual(text, "app-health:0.1.1 app-health:0.1.2")

    def test_changes_both_versions_of_a_chart(self):
        text = 'apiVersion: v2\nversion: 0.1.0\nappVersion: "0.1.0"\n'
        self.assertEqual(set_version.chart(text, "0.1.0", "1.0.0"), 'apiVersion: v2\nversion: 1.0.0\nappVersion: "1.0.0"\n')

    def test_changes_the_packages_of_this_checkout_in_a_lock_file(self):
        package = '[[package]]\nname = "probe"\nversion = "{}"\ndependencies = []\n'
        other = '[[package]]\nname = "other"\nversion = "0.1.0"\nsource = "registry"\n'
        self.assertEqual(
            set_version.lock(package.format("0.1.0") + other, "0.1.0", "0.2.0"), package.format("0.2.0") + other
        )


if __name__ == "__main__":
    unittest.main()
