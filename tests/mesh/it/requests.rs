//! Requests between Pods with either agent are authenticated, and nothing else reaches them.

use kubernetes_tests::node::{address, condition, http_get};
use mesh_tests::Mesh;
use mesh_tests::workloads::{Agent, application, calls, classic, command, control, pod, service};
use serde_json::{Value, json};

/// Pods with native sidecars, except where the name says so and where a container copies our agent.
const PODS: [(&str, Agent); 7] = [
    ("stock", Agent::Stock),
    ("mounted", Agent::Mounted),
    ("copied", Agent::Copied),
    ("included", Agent::Included),
    ("stock-classic", Agent::Stock),
    ("mounted-classic", Agent::Mounted),
    ("template", Agent::Template),
];
/// How many of the first Pods call each other. If all did, the node would be busy with requests.
const MUTUAL: usize = 4;

/// Returns the Pods that one calls: the others of the first ones, or the next of the rest and one of the first.
fn callees(index: usize) -> Vec<&'static str> {
    let name = |index: usize| PODS[index].0;
    match index.checked_sub(MUTUAL) {
        None => (0..MUTUAL).filter(|other| *other != index).map(name).collect(),
        Some(rest) => vec![name(MUTUAL + (rest + 1) % (PODS.len() - MUTUAL)), "mounted"],
    }
}

fn url(name: &str) -> String {
    format!("http://{name}:80/from-all")
}

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn requests_are_authenticated_between_both_agents() {
    let mesh = Mesh::shared();
    let shop = mesh.create_namespace("shop");
    for (index, (name, agent)) in PODS.into_iter().enumerate() {
        let arguments: Vec<String> =
            callees(index).into_iter().flat_map(|other| ["--call".to_owned(), url(other)]).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        shop.kubectl_ok(&["create", "serviceaccount", name], "");
        let mut pod = pod(name, agent, &[application(&arguments)]);
        if name.ends_with("classic") {
            pod = classic(pod);
        }
        pod["spec"]["serviceAccountName"] = name.into();
        shop.create(&service(name));
        shop.create(&pod);
    }
    for (name, agent) in PODS {
        let pod = shop.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        assert_eq!(command(&pod).is_some(), agent != Agent::Stock, "{}", pod["spec"]);
        let version = shop.kubectl_ok(&["logs", name, "-c", "istio-proxy"], "");
        assert_eq!(version.contains("app_health_agent"), agent != Agent::Stock, "{name}: {version}");
    }
    for (index, (name, _)) in PODS.into_iter().enumerate() {
        for other in callees(index) {
            let succeeds = || calls(&shop, name, &url(other)).succeeded > 0;
            mesh.node.until(&format!("{name} reaches {other}"), succeeds);
        }
    }
    for (name, _) in PODS {
        // Each sender is known to the receiving side by its certificate.
        let heads = || seen(&control(&shop, name, "app", "/seen"));
        let spiffe = |account: &str| format!("spiffe://cluster.local/ns/{}/sa/{account}", shop.name);
        let receiver = format!("By={};Hash=", spiffe(name));
        let is_known = |sender: &str, heads: &[String]| {
            let uri = format!("URI={}", spiffe(sender));
            heads.iter().any(|head| head.contains(&receiver) && head.contains(&uri))
        };
        let are_known = || {
            let heads = heads();
            let calls_it = |index: &usize| callees(*index).contains(&name);
            (0..PODS.len()).filter(calls_it).all(|index| is_known(PODS[index].0, &heads))
        };
        let what = format!("{name} knows the identities of all senders");
        mesh.node.until_or(&what, are_known, || heads().join("\n"));
    }
    for (name, agent) in PODS {
        let pod = shop.pod(name);
        for port in [8080, 8443, 9900, 15006] {
            assert_eq!(http_get(address(&pod, port), "/plaintext").status, 0, "{name}:{port}");
        }
        assert!(!control(&shop, name, "app", "/seen").contains("plaintext"), "{name}");
        scrape(&pod, agent);
    }
}

/// Prometheus finds the metrics of agent and Envoy by the annotations of Istio's injector.
fn scrape(pod: &Value, agent: Agent) {
    let annotations = &pod["metadata"]["annotations"];
    let expected = json!({"scrape": "true", "port": "15020", "path": "/stats/prometheus"});
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&annotations[format!("prometheus.io/{name}")], value);
    }
    let metrics = http_get(address(pod, 15020), "/stats/prometheus");
    assert_eq!(metrics.status, 200);
    let metrics = metrics.text();
    for name in
        ["istio_agent_cert_expiry_seconds{", "envoy_server_live", "istio_agent_startup_duration_seconds"]
    {
        assert!(metrics.contains(name), "{agent:?}: no {name}");
    }
}

fn seen(text: &str) -> Vec<String> {
    let seen: Value = serde_json::from_str(text).expect("JSON");
    let heads = seen["http"].as_array().expect("a list").iter();
    heads.map(|head| head.as_str().expect("text").to_owned()).collect()
}
