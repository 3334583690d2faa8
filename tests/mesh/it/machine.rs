//! A virtual machine joins the mesh with our agent in the place of Istio's.

use kubernetes_tests::node::condition;
use mesh_tests::Mesh;
use mesh_tests::machine::{self, Machine};
use mesh_tests::sidecar::{self, Program};
use mesh_tests::workloads::{Agent, application, calls, control, pod, service};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

const GROUP: &str = "legacy";
const POD: &str = "pod";
/// Events in the log of the agent.
const ISSUED: &str = "certificate issued";
const HEALTHY: &str = "to=Healthy";

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn a_virtual_machine_joins_the_mesh() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("machines");
    namespace.kubectl_ok(&["create", "serviceaccount", GROUP], "");
    namespace.create(&json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"name": GROUP},
        "spec": {
            "metadata": {"labels": {"app": GROUP}}, "template": {"serviceAccount": GROUP},
            "probe": {"periodSeconds": 1, "failureThreshold": 1, "httpGet": {"path": "/ready", "port": 8080}},
        },
    }));
    for name in [GROUP, POD] {
        namespace.create(&service(name));
    }
    let [to_machine, to_pod] = [GROUP, POD].map(|name| format!("http://{name}:80/from-all"));
    namespace.create(&pod(POD, Agent::Stock, &[application(&["--call", &to_machine])]));
    let machine = Machine::start(mesh, &namespace, GROUP, &["--call", &to_pod]);
    let is_healthy = |expected: bool| {
        let entries = mesh.node.cluster.get(&["-n", &namespace.name, "workloadentries"]);
        let entry = entries["items"].as_array().and_then(|entries| entries.first()).cloned();
        entry.is_some_and(|entry| health(&entry) == Some(if expected { "True" } else { "False" }))
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| mesh.node.until_or(what, is_so, || machine.log());
    until("istiod has registered the machine as healthy", &|| is_healthy(true));

    // Requests in both directions are authenticated.
    let identity = |account: &str| format!("URI=spiffe://cluster.local/ns/{}/sa/{account}", namespace.name);
    until("the machine knows the identity of the Pod", &|| {
        machine.control("/seen").contains(&identity("default"))
    });
    until("the Pod knows the identity of the machine", &|| {
        control(&namespace, POD, "app", "/seen").contains(&identity(GROUP))
    });
    assert!(mesh.istioctl(&["proxy-status"]).contains(&format!("{}.{}", machine::NAME, namespace.name)));

    // The machine is not served while its probe fails.
    let is_served = || calls(&namespace, POD, &to_machine).succeeded > 0;
    machine.control("/http/failing");
    until("istiod knows that the machine is unhealthy", &|| is_healthy(false));
    until("no request reaches the machine", &|| {
        let failures = calls(&namespace, POD, &to_machine).failures;
        failures.to_string().contains("no healthy upstream")
    });
    machine.control("/http/serving");
    until("the machine is served again", &|| is_healthy(true) && is_served());

    // A token is valid for an hour; afterwards the machine identifies itself by its certificate.
    machine.remove_token();
    let times = |event: &str| machine.log().matches(event).count();
    let (issued, healthy) = (times(ISSUED), times(HEALTHY));
    let agent = || sidecar::process(machine::NAME, &namespace.name, Program::Agent);
    let before = agent().expect("the agent runs");
    kill(before, Signal::SIGKILL).expect("the agent runs");
    until("another agent runs", &|| agent().is_some_and(|process| process != before));
    until("istiod has issued another certificate without a token", &|| times(ISSUED) > issued);
    until("the machine is healthy again", &|| times(HEALTHY) > healthy);
    // What was counted before.
    calls(&namespace, POD, &to_machine);
    until("the machine is served without a token", &|| is_healthy(true) && is_served());
    let pod = namespace.pod(POD);
    assert!(condition(&pod, "Ready"), "{pod}");

    // Its last report says that it is unhealthy; istiod removes its entry later.
    machine.stop_restarts();
    kill(agent().expect("the agent runs"), Signal::SIGTERM).expect("the agent runs");
    until("the machine is not served after its agent", &|| !is_healthy(true));
}

/// Returns the condition that istiod derives from the reports of a machine.
fn health(entry: &Value) -> Option<&str> {
    let conditions = entry["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == "Healthy")?["status"].as_str()
}
