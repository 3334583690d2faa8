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
    let says = |arguments: &[&str], words: &[&str]| {
        let text = mesh.istioctl(arguments);
        for word in words {
            assert!(text.contains(word), "{arguments:?}: no {word}:\n{text}");
        }
    };
    says(&["proxy-status"], &[&pod]);
    says(&["proxy-status", &pod], &["Clusters Match", "Listeners Match", "Routes Match"]);
    let service = format!("web.{}.svc.cluster.local", namespace.name);
    says(&["proxy-config", "clusters", &pod], &[&service, "xds-grpc", "sds-grpc"]);
    says(&["proxy-config", "endpoints", &pod], &["HEALTHY"]);
    says(&["proxy-config", "listeners", &pod], &["15006", "15001"]);
    says(&["proxy-config", "routes", &pod], &[&service]);
    says(&["proxy-config", "secret", &pod], &["default", "ROOTCA", "ACTIVE", "true"]);
    says(&["proxy-config", "bootstrap", &pod], &["sidecar~"]);
    says(&["proxy-config", "log", &pod], &["active loggers"]);
    let findings = mesh.istioctl(&["analyze", "--namespace", &namespace.name]);
    assert!(!findings.contains("IST0"), "{findings}");
    let described = ["experimental", "describe", "pod", "web", "--namespace", &namespace.name];
    says(&described, &["Workload mTLS mode: STRICT", "Service: web"]);
}
