//! Runs every command of docs/istio-setup.md, in order.

use kit::docker::archive;
use kubernetes_tests::doc_test::{Scripts, run_page};
use mesh_tests::{Mesh, OUR_IMAGE};

const REPOSITORY: &str = "registry.example.com/app-health-istio";
/// The node's images, and the names that the page uses for them.
const IMAGES: [(&str, &str); 2] = [
    (archive::AGENT, concat!("registry.example.com/app-health-istio:", env!("CARGO_PKG_VERSION"))),
    (archive::BUSYBOX, "docker.io/library/busybox:1.35"),
];

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn alone_every_command_of_the_page_works() {
    let mesh = Mesh::shared();
    for (ours, named) in IMAGES {
        mesh.node.tag_image(ours, named);
    }
    // A reader is slower than the API server, which applies another policy after a moment.
    mesh.install_policy(REPOSITORY);
    let scripts = Scripts::of_reader(&mesh.node);
    run_page("docs/istio-setup.md", &scripts);
    // The end of the page removes it.
    mesh.install_policy(OUR_IMAGE);
}
