//! Kinds of workloads, and settings of a Pod that matter to its agent.

use kit::docker::archive::BUSYBOX;
use kubernetes_tests::node::{FORWARDED_ADDRESS, FORWARDED_NAME, FollowedLog, Namespace, condition};
use mesh_tests::Mesh;
use mesh_tests::workloads::{Agent, application, calls, classic, pod, service, template};
use serde_json::{Value, json};

/// The end of a Job's Pod requires that its sidecar ends.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn jobs_end() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("jobs");
    let wait = "until wget -q -O /dev/null http://127.0.0.1:15020/healthz/ready; do sleep 1; done";
    let quit = format!("{wait}; wget -q -O - --post-data= http://127.0.0.1:15020/quitquitquit");
    // A classic sidecar ends when the application asks it to, as Istio documents.
    let jobs = [
        ("native", Agent::Mounted, wait),
        ("classic", Agent::Mounted, &quit),
        ("stock-classic", Agent::Stock, &quit),
        ("copied", Agent::Copied, &quit),
    ];
    for (name, agent, command) in jobs {
        let container = json!({"name": "app", "image": BUSYBOX, "command": ["sh", "-c", command]});
        let mut template = template(name, agent, &[container]);
        template["spec"]["restartPolicy"] = "Never".into();
        if name.ends_with("classic") {
            template = classic(template);
        }
        namespace.create(&json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "template": template},
        }));
    }
    for (name, ..) in jobs {
        let mut job = Value::Null;
        let is_complete = || {
            job = mesh.node.cluster.get(&["--namespace", &namespace.name, "job", name]);
            condition(&job, "Complete")
        };
        let story = || {
            let sidecar = ["-n", &namespace.name, "logs", &format!("job/{name}"), "-c", "istio-proxy"];
            let sidecar = mesh.node.cluster.kubectl(&sidecar, "");
            [
                namespace.kubectl_ok(&["describe", "pods", "-l", &format!("app={name}")], ""),
                String::from_utf8_lossy(&sidecar.stdout).into_owned(),
                namespace.kubelet_log(),
            ]
            .join("\n")
        };
        mesh.node.until_or(&format!("the Job {name} is complete"), is_complete, story);
    }
}

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn pods_of_a_stateful_set_are_reached_by_name() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("stateful");
    let mut headless = service("db");
    headless["spec"]["clusterIP"] = "None".into();
    headless["spec"]["ports"][0]["port"] = 8080.into();
    namespace.create(&headless);
    namespace.create(&json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db", "replicas": 2, "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "db"}}, "template": template("db", Agent::Mounted, &[application(&[])]),
        },
    }));
    namespace.kubectl_ok(&["rollout", "status", "statefulset/db", "--timeout", "120s"], "");
    let urls = ["http://db-0.db:8080/", "http://db-1.db:8080/"];
    let arguments: Vec<&str> = urls.iter().flat_map(|url| ["--call", url]).collect();
    let callers = [("caller-ours", Agent::Mounted), ("caller-stock", Agent::Stock)];
    for (name, agent) in callers {
        namespace.create(&pod(name, agent, &[application(&arguments)]));
    }
    for (name, _) in callers {
        namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        for url in urls {
            let succeeds = || calls(&namespace, name, url).succeeded > 0;
            mesh.node.until(&format!("{name} reaches {url}"), succeeds);
        }
    }
}

/// Both agents answer for names that only istiod knows, and pass on other queries.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn dns_queries_are_captured() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("dns");
    namespace.create(&service("web"));
    namespace.create(&json!({
        "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": "external"},
        "spec": {
            "hosts": ["external.example"], "addresses": ["240.240.1.1"], "resolution": "STATIC",
            "endpoints": [{"address": "192.0.2.77"}], "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
        },
    }));
    let pods = [("stock", Agent::Stock), ("ours", Agent::Mounted)];
    for (name, agent) in pods {
        let mut pod = pod(name, agent, &[application(&[])]);
        pod["metadata"]["annotations"]["proxy.istio.io/config"] =
            "proxyMetadata: {ISTIO_META_DNS_CAPTURE: \"true\"}".into();
        namespace.create(&pod);
    }
    for (name, _) in pods {
        namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
    }
    let address = |pod: &str, host: &str| {
        let look_up = format!("nslookup -type=a {host} 2>&1; true");
        let text = namespace.kubectl_ok(&["exec", pod, "-c", "app", "--", "sh", "-c", &look_up], "");
        let addresses: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("Address: "))
            .map(|address| address.trim().to_owned())
            .collect();
        addresses.last().cloned().unwrap_or(text)
    };
    let web = mesh.node.cluster.get(&["--namespace", &namespace.name, "service", "web"]);
    let web = web["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    let hosts = [
        ("external.example", "240.240.1.1".to_owned()),
        (&format!("web.{}.svc.cluster.local", namespace.name), web),
        // Only the DNS server of the node knows it.
        (FORWARDED_NAME, FORWARDED_ADDRESS.to_owned()),
    ];
    for (name, _) in pods {
        for (host, expected) in &hosts {
            mesh.node.until_or(
                &format!("{name} resolves {host}"),
                || address(name, host) == *expected,
                || address(name, host),
            );
        }
    }
}

/// What only Istio's agent supports is left to it, before a port is open.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn unsupported_settings_are_left_to_istios_agent() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("fallback");
    let mut pod = pod("web", Agent::Mounted, &[application(&[])]);
    pod["metadata"]["annotations"]["proxy.istio.io/config"] =
        "proxyMetadata: {COMPLIANCE_POLICY: fips-140-2}".into();
    namespace.create(&pod);
    namespace.pod_until("web", "is ready", |pod| condition(pod, "Ready"));
    let log = namespace.kubectl_ok(&["logs", "web", "-c", "istio-proxy"], "");
    let first = log.lines().next().unwrap_or_default();
    assert!(first.contains("COMPLIANCE_POLICY") && first.contains("pilot-agent"), "{log}");
    assert!(log.contains("Envoy proxy is ready"), "{log}");
}

/// Istio's injector rewrites hooks, as it rewrites probes, so that the agent calls the application.
#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn hooks_are_called() {
    let mesh = Mesh::shared();
    let namespace = mesh.create_namespace("hooks");
    let stop = json!({"httpGet": {"path": "/hook/stop", "port": 8080}});
    let start = json!({"httpGet": {"path": "/hook/start", "port": 8080}});
    // An application with a classic sidecar starts at the same time as that, so that a hook at its
    // start may find no agent, unless the application is held.
    let both = json!({"preStop": stop, "postStart": start});
    let pods = [
        ("native", Agent::Mounted, both.clone()),
        ("classic", Agent::Mounted, json!({"preStop": stop})),
        ("held-classic", Agent::Mounted, both),
        ("copied", Agent::Copied, json!({"preStop": stop})),
    ];
    for (name, agent, hooks) in &pods {
        let mut container = application(&[]);
        container["lifecycle"] = hooks.clone();
        let mut pod = pod(name, *agent, &[container]);
        if name.ends_with("classic") {
            pod = classic(pod);
        }
        if name.starts_with("held") {
            pod["metadata"]["annotations"]["proxy.istio.io/config"] =
                "holdApplicationUntilProxyStarts: true".into();
        }
        namespace.create(&pod);
    }
    for (name, _, hooks) in &pods {
        namespace.pod_until(name, "is ready", |pod| condition(pod, "Ready"));
        let log = FollowedLog::start(&namespace, name, "app");
        namespace.kubectl_ok(&["delete", "pod", name, "--wait=false"], "");
        let log = log.until_end();
        for (hook, path) in [("postStart", "/hook/start"), ("preStop", "/hook/stop")] {
            let called = log.contains(&format!("application: received request for {path}\n"));
            assert_eq!(called, !hooks[hook].is_null(), "{name} {hook}: {log}\n{}", events(&namespace, name));
        }
    }
}

fn events(namespace: &Namespace<'_>, pod: &str) -> String {
    namespace.events(pod).join("\n")
}
