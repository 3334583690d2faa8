//! Istio's command line tool works with Pods that have our agent.

use kubernetes_tests::node::condition;
use mesh_tests::Mesh;
use mesh_tests::workloads::{Agent, application, pod, service};

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn istioctl_understands_pods_with_our_agent() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("istioctl");
    namespace.create(&service("web"));
    namespace.create(&pod("web", Agent::Mounted, &[application(&[])]));
    namespace.pod_until("web", "is ready", |pod| condition(pod, "Ready"));
    let pod = format!("web.{}", namespace.name);
    // Other tests change the mesh, so that Envoy may be about to learn of a change.
    let prints = |arguments: &[&str], words: &[&str]| {
        let has_all = || {
            let text = mesh.istioctl(arguments);
            words.iter().all(|word| text.contains(word))
        };
        mesh.node
            .until_or(&format!("istioctl {arguments:?}: {words:?}"), has_all, || mesh.istioctl(arguments));
    };
    prints(&["proxy-status"], &[&pod]);
    prints(&["proxy-status", &pod], &["Clusters Match", "Listeners Match", "Routes Match"]);
    let service = format!("web.{}.svc.cluster.local", namespace.name);
    prints(&["proxy-config", "clusters", &pod], &[&service, "xds-grpc", "sds-grpc"]);
    prints(&["proxy-config", "endpoints", &pod], &["HEALTHY"]);
    prints(&["proxy-config", "listeners", &pod], &["15006", "15001"]);
    prints(&["proxy-config", "routes", &pod], &[&service]);
    prints(&["proxy-config", "secret", &pod], &["default", "ROOTCA", "ACTIVE", "true"]);
    prints(&["proxy-config", "bootstrap", &pod], &["sidecar~"]);
    prints(&["proxy-config", "log", &pod], &["active loggers"]);
    let findings = mesh.istioctl(&["analyze", "--namespace", &namespace.name]);
    assert!(!findings.contains("IST0"), "{findings}");
    let described = ["experimental", "describe", "pod", "web", "--namespace", &namespace.name];
    prints(&described, &["Workload mTLS mode: STRICT", "Service: web"]);
}
