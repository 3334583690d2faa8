"""Tests of sbom.py."""

import unittest

import sbom

LOCK = """
version = 4
[[package]]
name = "agent"
version = "0.1.0"
[[package]]
name = "bytes"
version = "1.12.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "abc"
"""


def document(name, crates):
    """Returns a list of cargo-cyclonedx in the folder /build."""
    root = {"type": "application", "bom-ref": f"path+file:///build/{name}#0.1.0", "name": name, "version": "0.1.0"}
    components = [
        {"type": "library", "bom-ref": f"registry#{crate}@{version}", "name": crate, "version": version}
        for crate, version in crates
    ]
    edges = [{"ref": root["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]}]
    metadata = {"component": root, "timestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "components": components, "dependencies": edges}


AGENT = document("agent", [("bytes", "1.12.1"), ("ring", "0.17.14")])
FILTER = document("filter", [("bytes", "1.12.1")])
TREE = "agent v0.1.0 (/app-health/agent)\nbytes v1.12.1\nbytes v1.12.1 (*)\n"


class Sbom(unittest.TestCase):
    def test_combines_lists_without_paths(self):
        crates = sbom.built(TREE + "filter v0.1.0 (/app-health/filter)\n")
        components, edges, top = sbom.combine([AGENT, FILTER], crates, "/build")
        self.assertEqual([component["name"] for component in components], ["agent", "filter", "bytes"])
        self.assertNotIn("/build", str(components) + str(edges) + str(top))
        self.assertEqual(len(edges), 2)
        self.assertEqual(top, [component["bom-ref"] for component in components[:2]])

    def test_leaves_out_what_is_not_compiled(self):
        components, edges, _ = sbom.combine([AGENT], sbom.built(TREE), "/build")
        self.assertEqual([component["name"] for component in components], ["agent", "bytes"])
        self.assertNotIn("ring", str(edges))

    def test_rejects_a_list_that_lacks_a_crate(self):
        with self.assertRaisesRegex(sbom.Mismatch, "tokio"):
            sbom.combine([AGENT], sbom.built(TREE + "tokio v1.54.0\n"), "/build")

    def test_adds_checksums(self):
        components, _, _ = sbom.combine([AGENT], sbom.built(TREE), "/build")
        sbom.add_checksums(components, sbom.locked(LOCK))
        hashes = {component["name"]: component.get("hashes") for component in components}
        self.assertEqual(hashes, {"agent": None, "bytes": [{"alg": "SHA-256", "content": "abc"}]})

    def test_rejects_a_crate_that_is_not_locked(self):
        components, _, _ = sbom.combine([document("agent", [("bytes", "1.0.0")])], {("bytes", "1.0.0")}, "/build")
        with self.assertRaisesRegex(sbom.Mismatch, "bytes 1.0.0"):
            sbom.add_checksums(components, sbom.locked(LOCK))

    def test_replaces_the_members_of_a_workspace(self):
        manifest = '[workspace]\nmembers = [\n  "agent", "probe",\n]\nexclude = ["x"]\n'
        expected = '[workspace]\nmembers = ["agent"]\nexclude = ["x"]\n'
        self.assertEqual(sbom.with_members(manifest, ["agent"]), expected)
        self.assertEqual(sbom.with_members(expected, ["agent"]), expected)
        with self.assertRaises(sbom.Mismatch):
            sbom.with_members("[package]\n", ["agent"])


if __name__ == "__main__":
    unittest.main()
