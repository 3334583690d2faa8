//! Runs every command of docs/istio-setup.md, in order.

use std::fs;
use std::os::unix::fs::symlink;

use istio_tests::istio;
use kit::docker::archive;
use kubernetes_tests::doc_test::{Scripts, run_page};
use mesh_tests::Mesh;

/// The node's images, and the names that the page uses for them.
const IMAGES: [(&str, &str); 2] = [
    (archive::AGENT, "registry.example.com/app-health-istio:0.1.0"),
    (archive::BUSYBOX, "docker.io/library/busybox:1.35"),
];

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn alone_every_command_of_the_page_works() {
    let mesh = Mesh::shared();
    for (ours, named) in IMAGES {
        mesh.node.tag_image(ours, named);
    }
    let scripts = Scripts::of_reader(&mesh.node);
    // Helm takes a folder of this name for the chart in Istio's repository.
    fs::create_dir_all(scripts.folder.join("istio")).expect("a writable folder");
    symlink(istio("charts/istio-discovery"), scripts.folder.join("istio/istiod")).expect("a writable folder");
    run_page("docs/istio-setup.md", &scripts);
}
