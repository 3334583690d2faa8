"""Writes a container image for several architectures as one OCI archive, without a daemon or a registry.

An image has two layers: the base, from Debian packages, and the programs. The same inputs give the same
bytes: files are sorted, belong to root, and have the time of SOURCE_DATE_EPOCH. The archive also has the
file that `docker load` reads, for the architecture of this machine.

Only Python's standard library and dpkg-deb are used.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import quote

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# What a base needs of a package: libraries, the name of the distribution, the notice of the package's
# copyright, and the texts of licenses that it refers to. Not the tables for character sets, of which glibc's
# own functions for UTF-8 need none, and not glibc's libraries for debuggers, vector functions and old programs.
KEPT = ("./lib", "./usr/lib", "./usr/share/common-licenses", "./usr/share/doc")
LEFT_OUT = ("/gconv/", "/audit/", "/changelog", "/FAQ", "/NEWS", "/README", "/TODO", "/NOTES") + tuple(
    f"/lib{name}." for name in ("BrokenLocale", "c_malloc_debug", "memusage", "mvec", "nsl", "nss_compat", "nss_hesiod", "pcprofile", "thread_db")
)
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def entry(name, mode, seconds):
    """Returns the head of a tar entry that belongs to root."""
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = mode, seconds
    return info


def folders(name):
    """Returns the parents of a path: usr, usr/local for usr/local/envoy."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


class Layer:
    """The files of a layer: their entries and contents, by path."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.entries = {}

    def add(self, name, content, mode=0o755):
        info = entry(name, mode, self.seconds)
        info.size = len(content)
        self.put(info, content)

    def put(self, info, content=None):
        for folder in folders(info.name):
            if folder not in self.entries:
                directory = entry(folder, 0o755, self.seconds)
                directory.type = tarfile.DIRTYPE
                self.entries[folder] = (directory, None)
        self.entries[info.name] = (info, content)

    def folder(self, name, owner, mode):
        info = entry(name, mode, self.seconds)
        info.type, info.uid, info.gid = tarfile.DIRTYPE, owner, owner
        self.put(info)

    def link(self, name, destination):
        info = entry(name, 0o777, self.seconds)
        info.type, info.linkname = tarfile.SYMTYPE, destination
        self.put(info)

    def tar(self):
        text = io.BytesIO()
        with tarfile.open(fileobj=text, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for name in sorted(self.entries):
                info, content = self.entries[name]
                archive.addfile(info, None if content is None else io.BytesIO(content))
        return text.getvalue()


def is_kept(name):
    return name.startswith(KEPT) and not any(part in name for part in LEFT_OUT)


def unpack(package, layer):
    """Adds the libraries of a Debian package to a layer. As in Debian, /lib is a link to /usr/lib. Scanners find
    the package in dpkg's folder, as in other images without dpkg.
    """
    control = subprocess.run(["dpkg-deb", "--field", package], check=True, capture_output=True).stdout
    layer.add(f"var/lib/dpkg/status.d/{field(package, 'Package')}", control, 0o644)
    tar = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for member in archive:
            if member.isdir() or not is_kept(member.name):
                continue
            name = member.name.removeprefix("./")
            info = entry(f"usr/{name}" if name.startswith("lib") else name, member.mode, layer.seconds)
            info.type, info.linkname, info.size = member.type, member.linkname, member.size
            file = archive.extractfile(member) if member.isfile() else None
            layer.put(info, file.read() if file else None)


def base(packages, seconds):
    layer = Layer(seconds)
    for package in sorted(packages):
        unpack(package, layer)
    layer.link("lib", "usr/lib")
    if any(name.startswith("usr/lib64/") for name in layer.entries):
        layer.link("lib64", "usr/lib64")
    layer.link("etc/os-release", "../usr/lib/os-release")
    layer.add("etc/passwd", b"app-health:x:1337:1337::/nonexistent:/nonexistent\n", 0o644)
    layer.add("etc/group", b"app-health:x:1337:\n", 0o644)
    layer.folder("tmp", 0, 0o1777)
    layer.folder("run", 0, 0o755)
    layer.link("var/run", "/run")
    return layer


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


class Archive:
    """An OCI image layout in a tar file."""

    def __init__(self, seconds):
        self.layer = Layer(seconds)

    def blob(self, content, media_type):
        digest = sha256(content)
        self.layer.add(f"blobs/sha256/{digest.removeprefix('sha256:')}", content, 0o644)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def image(self, architecture, config, layers, created):
        """Adds the image of an architecture. Returns its descriptor and its manifest."""
        tars = [layer.tar() for layer in layers]
        blobs = [self.blob(gzip.compress(tar, 6, mtime=0), LAYER) for tar in tars]
        document = {
            "created": created,
            "architecture": architecture,
            "os": "linux",
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [sha256(tar) for tar in tars]},
            "history": [{"created": created, "created_by": "packaging/image.py"} for _ in tars],
        }
        config_blob = self.blob(encoded(document), CONFIG)
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config_blob, "layers": blobs}
        descriptor = self.blob(encoded(manifest), MANIFEST)
        return {**descriptor, "platform": {"architecture": architecture, "os": "linux"}}, manifest

    def finish(self, name, images, local):
        """Adds the indexes. `local` is the manifest of this machine's image."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": images}
        descriptor = self.blob(encoded(index), INDEX)
        descriptor["annotations"] = {"org.opencontainers.image.ref.name": name}
        top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]}
        path = lambda blob: "blobs/sha256/" + blob["digest"].removeprefix("sha256:")
        docker = [{"Config": path(local["config"]), "RepoTags": [name], "Layers": list(map(path, local["layers"]))}]
        self.layer.add("index.json", encoded(top), 0o644)
        self.layer.add("manifest.json", encoded(docker), 0o644)
        self.layer.add("oci-layout", encoded({"imageLayoutVersion": "1.0.0"}), 0o644)
        return self.layer.tar(), descriptor["digest"]


def encoded(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def labels(image, version, revision, created, source):
    """Returns the labels of the OCI image specification. `source` is the URL of the repository, if it is known."""
    return {
        **({"org.opencontainers.image.source": source} if source else {}),
        "org.opencontainers.image.title": image["name"],
        "org.opencontainers.image.description": image["description"],
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": revision,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.vendor": "app-health developers",
    }


def configuration(image, found):
    """Returns the part of an image's configuration that `docker inspect` shows as Config."""
    config = {
        "User": "1337:1337",
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", *image.get("env", [])],
        "Entrypoint": image["entrypoint"],
        "ExposedPorts": {f"{port}/tcp": {} for port in image["ports"]},
        "Labels": found,
    }
    if "command" in image:
        config["Cmd"] = image["command"]
    return config


def field(package, name):
    """Returns a field of a Debian package."""
    command = ["dpkg-deb", "--field", package, name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def digest_of(file):
    return [{"alg": "SHA-256", "content": hashlib.sha256(file.read_bytes()).hexdigest()}]


def distribution(layer):
    """Returns the distribution of a base layer, such as debian-12, from its file os-release."""
    _, content = layer.entries["usr/lib/os-release"]
    facts = dict(re.findall(r'(?m)^(\w+)="?(.*?)"?$', content.decode()))
    return f"{facts['ID']}-{facts['VERSION_ID']}"


def package_url(package, distro):
    """Returns the package URL of a Debian package, which also names its source package."""
    name, version, machine, source = (field(package, key) for key in ("Package", "Version", "Architecture", "Source"))
    qualifiers = {"arch": machine, "distro": distro, "upstream": source.split(" ")[0]}
    known = "&".join(f"{key}={value}" for key, value in qualifiers.items() if value)
    return f"pkg:deb/debian/{quote(name)}@{quote(version)}?{known}"


def sbom(crates, name, version, packages, distro, others):
    """Returns the CycloneDX list of an image: the crates of its program, the Debian packages of its base, which
    is of the distribution `distro`, and the other programs.
    """
    document = json.loads(json.dumps(crates))
    root = document["metadata"]["component"]
    components = [dict(root)]
    for package in sorted(packages):
        reference = package_url(package, distro)
        components.append(
            {
                "type": "library",
                "bom-ref": reference,
                "name": field(package, "Package"),
                "version": field(package, "Version"),
                "purl": reference,
                "hashes": digest_of(package),
            }
        )
    components += others
    reference = f"{name}@{version}"
    document["metadata"]["component"] = {"type": "container", "bom-ref": reference, "name": name, "version": version}
    document["dependencies"].insert(
        0, {"ref": reference, "dependsOn": [component["bom-ref"] for component in components]}
    )
    document["components"] += components
    return document


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", required=True, type=Path, help="what the image contains, as JSON")
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="commit")
    parser.add_argument("--source", default="", help="URL of the repository")
    parser.add_argument("--root", required=True, type=Path, help="folder that the paths of --image start in")
    parser.add_argument("--output", required=True, type=Path)
    arguments = parser.parse_args()
    image = json.loads(arguments.image.read_text())
    seconds = int(os.environ["SOURCE_DATE_EPOCH"])
    created = subprocess.run(
        ["date", "--utc", "--date", f"@{seconds}", "+%Y-%m-%dT%H:%M:%SZ"], check=True, capture_output=True, text=True
    ).stdout.strip()
    config = configuration(image, labels(image, arguments.version, arguments.revision, created, arguments.source))
    archive, descriptors, local = Archive(seconds), [], None
    for machine, architecture in ARCHITECTURES.items():
        programs = Layer(seconds)
        for name, source in image["files"].items():
            mode = 0o755 if "/bin/" in name else 0o644
            programs.add(name, (arguments.root / source.replace("ARCH", machine)).read_bytes(), mode)
        for name in image.get("folders", []):
            programs.folder(name, 1337, 0o755)
        packages = list((arguments.root / f"target/packaging/base/{machine}").glob("*.deb"))
        layers = [base(packages, seconds), programs]
        distro = distribution(layers[0])
        descriptor, manifest = archive.image(architecture, config, layers, created)
        descriptors.append(descriptor)
        sizes = [len(layer.tar()) / 1e6 for layer in layers]
        print(f"{image['name']} {architecture}: base {sizes[0]:.1f} MB, programs {sizes[1]:.1f} MB")
        if machine == platform.machine():
            local = manifest
        others = [
            {**other, "hashes": digest_of(arguments.root / image["files"][file].replace("ARCH", machine))}
            for file, other in image.get("components", {}).items()
        ]
        crates = json.loads((arguments.root / image["sbom"].replace("ARCH", machine)).read_text())
        listed = sbom(crates, image["name"], arguments.version, packages, distro, others)
        file = f"{image['name']}-image-{arguments.version}-{architecture}.cdx.json"
        arguments.output.with_name(file).write_text(json.dumps(listed, indent=1) + "\n")
    content, digest = archive.finish(f"{image['name']}:{arguments.version}", descriptors, local)
    arguments.output.write_bytes(content)
    print(f"{arguments.output.name} {digest}")


if __name__ == "__main__":
    main()
