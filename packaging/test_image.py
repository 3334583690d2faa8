"""Tests of image.py, and of the images that it writes: they are configured as those of the Dockerfiles."""

import io
import json
import re
import tarfile
import unittest
from pathlib import Path

import image

ROOT = Path(__file__).parent.parent
IMAGES = {
    "Dockerfile": "app-health",
    "Dockerfile.control-plane": "app-health-control-plane",
    "Dockerfile.istio": "app-health-istio",
}


def instructions(dockerfile):
    """Returns the instructions of a Dockerfile that configure its last image, with ARG's defaults filled in."""
    text = re.sub(r"(?ms)^FROM [^\n]* AS build$.*?(?=^FROM )", "", (ROOT / dockerfile).read_text())
    values = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.M))
    found = {}
    for word, value in re.findall(r"^(USER|ENV|EXPOSE|ENTRYPOINT|CMD) (.*)$", text, re.M):
        value = re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], value)
        found.setdefault(word, []).append(value)
    return found


def written():
    """Returns the files of an archive with one image of each architecture."""
    archive = image.Archive(1_700_000_000)
    layer = image.Layer(1_700_000_000)
    layer.add("usr/bin/program", b"program")
    created = "2023-11-14T22:13:20Z"
    images = [archive.image(name, {"User": "1337:1337"}, [layer], created) for name in ("amd64", "arm64")]
    content, digest = archive.finish("name:1.2.3", [descriptor for descriptor, _ in images], images[0][1])
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}, digest, content


class Image(unittest.TestCase):
    def test_the_configuration_is_that_of_the_dockerfile(self):
        for dockerfile, name in IMAGES.items():
            expected = instructions(dockerfile)
            description = json.loads((ROOT / f"packaging/images/{name}.json").read_text())
            config = image.configuration(description, {})
            self.assertEqual([config["User"]], expected["USER"], dockerfile)
            self.assertEqual(config["Env"][1:], expected.get("ENV", []), dockerfile)
            self.assertEqual(sorted(config["ExposedPorts"]), sorted(f"{port}/tcp" for port in expected.get("EXPOSE", [""])[0].split()))
            self.assertEqual([json.dumps(config["Entrypoint"])], expected["ENTRYPOINT"], dockerfile)
            command = [json.dumps(config["Cmd"])] if "Cmd" in config else []
            self.assertEqual(command, expected.get("CMD", []), dockerfile)

    def test_an_archive_is_reproducible_and_consistent(self):
        files, digest, content = written()
        self.assertEqual(written()[2], content)
        for name, blob in files.items():
            if name.startswith("blobs/"):
                self.assertEqual(name, "blobs/sha256/" + image.sha256(blob).removeprefix("sha256:"))
        top = json.loads(files["index.json"])["manifests"][0]
        self.assertEqual(top["digest"], digest)
        index = json.loads(files["blobs/sha256/" + digest.removeprefix("sha256:")])
        platforms = [manifest["platform"]["architecture"] for manifest in index["manifests"]]
        self.assertEqual(platforms, ["amd64", "arm64"])
        for path in json.loads(files["manifest.json"])[0]["Layers"]:
            self.assertIn(path, files)

    def test_a_layer_contains_the_folders_of_its_files(self):
        layer = image.Layer(0)
        layer.add("usr/local/bin/envoy", b"")
        layer.folder("run/app-health", 1337, 0o755)
        with tarfile.open(fileobj=io.BytesIO(layer.tar())) as tar:
            members = {member.name: member for member in tar}
        self.assertEqual(sorted(members), ["run", "run/app-health", "usr", "usr/local", "usr/local/bin", "usr/local/bin/envoy"])
        self.assertEqual((members["run/app-health"].uid, members["run"].uid), (1337, 0))

    def test_only_libraries_are_kept_of_a_package(self):
        kept = ["./lib/x86_64-linux-gnu/libc.so.6", "./usr/share/common-licenses/GPL-3", "./usr/share/doc/libc6/copyright"]
        left_out = ["./usr/lib/x86_64-linux-gnu/gconv/BIG5.so", "./lib/x86_64-linux-gnu/libmvec.so.1", "./etc/ld.so.conf", "./usr/bin/ldd", "./usr/share/doc/libc6/changelog.Debian.gz"]
        self.assertEqual([image.is_kept(name) for name in kept + left_out], [True] * 3 + [False] * 5)

    def test_the_distribution_is_named_by_the_base(self):
        layer = image.Layer(0)
        layer.add("usr/lib/os-release", b'PRETTY_NAME="Debian GNU/Linux 12"\nVERSION_ID="12"\nID=debian\n')
        self.assertEqual(image.distribution(layer), "debian-12")

    def test_the_repository_is_a_label_where_it_is_known(self):
        description = {"name": "app-health", "description": "text"}
        known = image.labels(description, "1.2.3", "abc", "2026-01-01T00:00:00Z", "https://example.com/app-health")
        unknown = image.labels(description, "1.2.3", "abc", "2026-01-01T00:00:00Z", "")
        self.assertEqual(known.keys() - unknown.keys(), {"org.opencontainers.image.source"})

    def test_the_sidecar_has_the_newest_envoy(self):
        newest = re.search(r"^envoy_version=(\S+)$", (ROOT / "justw").read_text(), re.M)[1]
        description = json.loads((ROOT / "packaging/images/app-health.json").read_text())
        self.assertIn(f"APP_HEALTH_ENVOY_VERSION={newest}", description["env"])
        self.assertEqual(description["components"]["usr/local/bin/envoy"]["version"], newest)

    def test_the_list_of_an_image_contains_its_program_and_others(self):
        root = {"type": "application", "bom-ref": "program@1", "name": "program", "version": "1"}
        crates = {"metadata": {"component": root}, "components": [], "dependencies": []}
        listed = image.sbom(crates, "name", "1.2.3", [], "debian-12", [{"bom-ref": "envoy@2"}])
        self.assertEqual([component["bom-ref"] for component in listed["components"]], ["program@1", "envoy@2"])
        self.assertEqual(listed["dependencies"][0], {"ref": "name@1.2.3", "dependsOn": ["program@1", "envoy@2"]})


if __name__ == "__main__":
    unittest.main()
