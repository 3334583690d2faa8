//! Runs every command of docs/kubernetes.md, in order, on its own node.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use kit::agent::binary_of;
use kit::docker::archive;
use kit::envoy::workspace;
use kubernetes_tests::doc_test::{Scripts, blocks};
use kubernetes_tests::helm;
use kubernetes_tests::node::Node;
use kubernetes_tests::tool;
use tokio::time::Instant;

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
        tag_image(&node, ours, named);
    }
    let scripts = environment(&node);
    let page = fs::read_to_string(workspace().join("docs/kubernetes.md")).expect("the page");
    for block in blocks(&page).expect("a page that can be run") {
        if !block.mark.is_empty() {
            continue;
        }
        let begin = Instant::now();
        if let Err(error) = scripts.run(&block) {
            panic!("docs/kubernetes.md, {error}");
        }
        println!("docs/kubernetes.md, line {}: {} s", block.line, begin.elapsed().as_secs());
    }
}

/// Tags an image of the node with another name, as if it had been pulled from a registry.
fn tag_image(node: &Node, ours: &str, named: &str) {
    let from =
        if ours.contains('/') { format!("docker.io/{ours}") } else { format!("docker.io/library/{ours}") };
    let mut command = node.command("ctr");
    let output = command.args(["--namespace", "k8s.io", "images", "tag", &from, named]).output();
    let output = output.expect("nsenter starts");
    assert!(output.status.success(), "{named}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The environment of the page's reader: a new directory with the shipped manifests and the chart, as
/// in a checkout, `kubectl`, `helm` and the project's programs in `PATH`, and the kubeconfig of the
/// administrator.
fn environment(node: &Node) -> Scripts {
    let logs = node.folder.join("log/docs");
    let folder = node.folder.join("docs");
    for folder in [&logs, &folder] {
        fs::create_dir_all(folder).expect("a writable folder");
    }
    let shipped = ["envoy-config", "charts"].map(|name| workspace().join(name));
    let copy = Command::new("cp").arg("-R").args(shipped).arg(&folder).status().expect("cp starts");
    assert!(copy.success());
    let (kubectl, helm, ours) = (tool("kubectl"), helm::program(), binary_of("app-health"));
    let first =
        [&kubectl, &helm, &ours].map(|program| program.parent().map(Path::to_path_buf).unwrap_or_default());
    let path = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths(first.into_iter().chain(env::split_paths(&path))).expect("paths without colons");
    let environment = vec![
        ("KUBECONFIG".to_owned(), node.cluster.kubeconfig("admin").into()),
        ("HOME".to_owned(), folder.clone().into()),
        ("PATH".to_owned(), path),
        // The locale with which the page was written.
        ("LC_ALL".to_owned(), "C.UTF-8".into()),
    ];
    Scripts { folder, logs, environment }
}
