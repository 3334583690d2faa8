//! Runs every command of docs/kubernetes.md, in order, on its own node.

use kit::docker::archive;
use kubernetes_tests::doc_test::{Scripts, run_page};
use kubernetes_tests::node::Node;

/// The node's images, and the names that the page uses for them. There is no second release yet, so
/// the same image gets both versions.
const IMAGES: [(&str, &str); 5] = [
    (archive::SIDECAR, "registry.example.com/app-health:0.1.0"),
    (archive::SIDECAR, "registry.example.com/app-health:0.1.1"),
    (archive::CONTROL_PLANE, "registry.example.com/app-health-control-plane:0.1.0"),
    (archive::CONTROL_PLANE, "registry.example.com/app-health-control-plane:0.1.1"),
    (archive::BUSYBOX, "docker.io/library/busybox:1.35"),
];

#[test]
#[ignore = "needs a Kubernetes node: ./justw test-kubernetes"]
fn every_command_of_the_page_works() {
    let node = Node::start("docs");
    for (ours, named) in IMAGES {
        node.tag_image(ours, named);
    }
    run_page("docs/kubernetes.md", &Scripts::of_reader(&node));
}
