//! Properties that hold for every Pod, checked with generated Pods.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::settings;
use crate::patch::patch;
use crate::{PROBERS_ENV, PodContext, PodOutcome, ProbeResult, apply};

const FLAGS: [&str; 6] = [
    "",
    "--sidecar-mode classic",
    "--sidecar-mode classic --hold=false",
    "--mode rewrite-only",
    "--status-port 16020",
    "--template full.yaml",
];

fn port() -> impl Strategy<Value = Value> {
    select(vec![
        json!(8080),
        json!("http"),
        json!("8080"),
        json!("nope"),
        json!(15020),
        json!(15021),
        json!(70000),
        json!(null),
        json!(1.5),
    ])
}

fn handler() -> impl Strategy<Value = (String, Value)> {
    let path = select(vec![
        json!("/x"),
        json!(""),
        json!(null),
        json!("/$(HOME)/$$"),
        json!("/app-health/app/livez"),
        json!("/a~b/\u{e9}"),
        json!("mailto:x"),
        json!(7),
    ]);
    let extra = prop::option::weighted(0.1, Just(("authority", json!("x"))));
    let host = select(vec![None, None, None, Some(json!("")), Some(json!(null)), Some(json!("10.0.0.9"))]);
    let scheme = select(vec![None, Some(json!("HTTPS")), Some(json!("http")), Some(json!("FTP"))]);
    let headers = select(vec![
        None,
        Some(json!([])),
        Some(json!([{"name": "Host", "value": "$(A)"}])),
        Some(json!([{"name": ":p", "value": "x"}])),
    ]);
    (
        select(vec!["httpGet", "tcpSocket", "grpc", "exec", "sleep", "other"]),
        port(),
        path,
        host,
        scheme,
        headers,
        extra,
    )
        .prop_map(|(name, port, path, host, scheme, headers, extra)| {
            let mut fields = Map::new();
            fields.insert("port".into(), port);
            if name == "httpGet" {
                fields.insert("path".into(), path);
                for (key, value) in [("host", host), ("scheme", scheme), ("httpHeaders", headers)] {
                    fields.extend(value.map(|value| (key.to_owned(), value)));
                }
            }
            fields.extend(extra.map(|(key, value)| (key.to_owned(), value)));
            (name.to_owned(), Value::Object(fields))
        })
}

fn probe() -> impl Strategy<Value = Value> {
    let unknown = select(vec![
        None,
        None,
        Some(json!({"deep": [null, 18_446_744_073_709_551_615_u64]})),
        Some(json!(null)),
    ]);
    let timeout = select(vec![
        None,
        Some(json!(0)),
        Some(json!(1)),
        Some(json!(2_147_483_647)),
        Some(json!(-1)),
        Some(json!(null)),
    ]);
    (prop::collection::vec(handler(), 0..3), timeout, unknown, any::<bool>()).prop_map(
        |(handlers, timeout, unknown, null)| {
            if null && handlers.is_empty() {
                return Value::Null;
            }
            let mut fields = Map::new();
            fields.extend(timeout.map(|timeout| ("timeoutSeconds".to_owned(), timeout)));
            fields.extend(handlers.into_iter().take(if null { 1 } else { 2 }));
            fields.extend(unknown.map(|unknown| ("a/b~c".to_owned(), unknown)));
            Value::Object(fields)
        },
    )
}

fn container(names: Vec<&'static str>) -> impl Strategy<Value = Value> {
    let fields = prop::collection::vec(
        (select(vec!["livenessProbe", "readinessProbe", "startupProbe", "preStop", "postStart"]), probe()),
        0..4,
    );
    let policy = prop::option::of(Just("Always"));
    (select(names), fields, policy, prop::option::of(port())).prop_map(|(name, fields, policy, port)| {
        let mut container = json!({"name": name, "image": "shop:1", "x-unknown": null});
        for (field, probe) in fields {
            let place = if field.starts_with('p') { &mut container["lifecycle"] } else { &mut container };
            place[field] = probe;
        }
        if let Some(policy) = policy {
            container["restartPolicy"] = policy.into();
        }
        if let Some(port) = port {
            container["ports"] = json!([{"name": "http", "containerPort": port}]);
        }
        container
    })
}

fn sidecar() -> impl Strategy<Value = Value> {
    let value = select(vec![
        None,
        Some(json!({"value": ""})),
        Some(json!({"value": "{\"/app-health/app/livez\": {\"tcpSocket\":{\"port\": 1}}}"})),
        Some(json!({"value": "{\"/app-health/old/livez\":{\"httpGet\":{\"port\":1,\"path\":\"$(X)\"}}}"})),
        Some(json!({"value": "{broken"})),
        Some(json!({"value": "{\"/app-health/a/livez\":{\"tcpSocket\":{\"port\":15020}}}"})),
        Some(json!({"valueFrom": {"fieldRef": {"fieldPath": "x"}}})),
    ]);
    (select(vec!["auto", "envoy:1"]), value, any::<bool>(), any::<bool>()).prop_map(
        |(image, value, held, hook)| {
            let mut sidecar = json!({"name": "app-health-proxy", "image": image, "restartPolicy": "Always"});
            if let Some(value) = value {
                let mut variable = json!({"name": PROBERS_ENV});
                variable
                    .as_object_mut()
                    .expect("an object")
                    .extend(value.as_object().expect("an object").clone());
                sidecar["env"] = json!([{"name": "OTHER", "value": "$(Y)"}, variable]);
            }
            if held {
                sidecar["startupProbe"] = json!({"httpGet": {"port": 15021}});
            }
            if hook {
                sidecar["lifecycle"] =
                    json!({"postStart": {"exec": {"command": ["a"]}}, "preStop": {"sleep": {"seconds": 1}}});
            }
            sidecar
        },
    )
}

fn pod() -> impl Strategy<Value = Value> {
    let names = vec!["app", "web", "a.b_C", "bad/name", ""];
    let containers = prop::collection::vec(container(names.clone()), 1..4);
    let inits = prop::collection::vec(container(names), 0..3);
    let annotations = prop::collection::vec(
        select(vec![
            ("sidecar.istio.io/inject", "false"),
            ("sidecar.istio.io/rewriteAppHTTPProbers", "nonsense"),
            ("status.sidecar.istio.io/port", "17020"),
            ("status.sidecar.istio.io/port", "0"),
            ("proxy.istio.io/config", "holdApplicationUntilProxyStarts: false"),
            ("app-health.io/original-probes", "{\"app\":{\"livenessProbe\":{\"tcpSocket\":{\"port\":9}}}}"),
            ("app-health.io/warnings", "[\"an old one\"]"),
            ("app-health.io/original-probes", "[broken"),
        ]),
        0..3,
    );
    (containers, inits, prop::option::of((sidecar(), 0..3_usize)), annotations, any::<bool>()).prop_map(
        |(mut containers, mut inits, sidecar, annotations, never)| {
            if let Some((sidecar, place)) = sidecar {
                if place < 2 { inits.insert(place.min(inits.len()), sidecar) } else { containers.insert(0, sidecar) }
            }
            let mut pod = json!({"metadata": {"name": "x", "creationTimestamp": null}, "spec": {"containers": containers, "huge": 1e300}});
            if !inits.is_empty() {
                pod["spec"]["initContainers"] = inits.into();
            }
            for (name, value) in annotations {
                pod["metadata"]["annotations"][name] = value.into();
            }
            if never {
                pod["spec"]["restartPolicy"] = "Never".into();
            }
            pod
        },
    )
}

/// Returns the Pod without what the injector may change: the sidecar and the template, and handlers
/// and timeouts of the probes for which `ours` is true.
fn rest(pod: &Value, sidecar: &str, ours: &dyn Fn(&str, &str) -> bool) -> Value {
    let mut rest = pod.clone();
    for key in [
        "app-health.io/status",
        "app-health.io/original-probes",
        "app-health.io/warnings",
        "kubectl.kubernetes.io/default-container",
        "prometheus.io/scrape",
    ] {
        if let Some(annotations) = rest["metadata"]["annotations"].as_object_mut() {
            annotations.remove(key);
        }
    }
    if rest["metadata"]["annotations"].as_object().is_none_or(Map::is_empty) {
        rest["metadata"].as_object_mut().expect("metadata").remove("annotations");
    }
    rest["metadata"].as_object_mut().expect("metadata").remove("labels");
    let spec = rest["spec"].as_object_mut().expect("a spec");
    spec.remove("volumes");
    spec.remove("imagePullSecrets");
    for list in ["initContainers", "containers"] {
        let Some(containers) = spec.get_mut(list).and_then(Value::as_array_mut) else { continue };
        containers.retain(|container| {
            ![sidecar, "logs", "capture"].contains(&container["name"].as_str().expect("a name"))
        });
        for container in containers.iter_mut() {
            let name = container["name"].as_str().expect("a name").to_owned();
            for (field, word) in [
                ("livenessProbe", "livez"),
                ("readinessProbe", "readyz"),
                ("startupProbe", "startupz"),
                ("preStop", "prestopz"),
                ("postStart", "poststartz"),
            ] {
                let place = if field.starts_with('p') {
                    container.get_mut("lifecycle")
                } else {
                    Some(&mut *container)
                };
                let probe = place.and_then(|place| place.get_mut(field)).and_then(Value::as_object_mut);
                if let Some(probe) = probe.filter(|_| ours(&name, word)) {
                    for key in ["httpGet", "tcpSocket", "grpc", "timeoutSeconds", "exec", "sleep"] {
                        probe.remove(key);
                    }
                }
            }
        }
        if containers.is_empty() {
            spec.remove(list);
        }
    }
    rest
}

/// Parses the declared probes as the filter does.
fn accepted(table: &str) -> probe::PluginConfig {
    let configuration = json!({"podIP": "10.0.0.1", "probers": table}).to_string();
    probe::PluginConfig::parse(configuration.as_bytes()).unwrap_or_else(|error| panic!("{error}: {table}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_pods_are_injected_idempotently(pod in pod(), flags in select(FLAGS.to_vec())) {
        let settings = settings(flags);
        let once = apply(&pod, PodContext::default(), &settings).expect("a Pod");
        let twice = apply(&once.pod, PodContext::default(), &settings).expect("a Pod");
        prop_assert_eq!(twice.pod.to_string(), once.pod.to_string());
        prop_assert!(twice.outcome != PodOutcome::Injected || once.outcome != PodOutcome::Injected);
    }

    #[test]
    fn the_patch_produces_the_injected_pod(pod in pod(), flags in select(FLAGS.to_vec())) {
        let injection = apply(&pod, PodContext::default(), &settings(flags)).expect("a Pod");
        let mut patched = pod.clone();
        match patch(&pod, &injection.pod) {
            None => prop_assert!(matches!(injection.outcome, PodOutcome::Unchanged | PodOutcome::Skipped | PodOutcome::Injected)),
            Some(bytes) => {
                let operations: json_patch::Patch = serde_json::from_slice(&bytes).expect("a patch");
                json_patch::patch(&mut patched, &operations).expect("a patch that can be applied");
            }
        }
        prop_assert_eq!(patched, injection.pod);
    }

    #[test]
    fn every_rewritten_probe_has_a_valid_table_entry(pod in pod(), flags in select(FLAGS.to_vec())) {
        let injection = apply(&pod, PodContext::default(), &settings(flags)).expect("a Pod");
        let leads_away = injection.probes.iter().filter(|probe| probe.result != ProbeResult::NotRewritten);
        let keys: Vec<String> = leads_away.map(|probe| {
            let prefix = if probe.word.starts_with('p') { "app-lifecycle" } else { "app-health" };
            format!("/{prefix}/{}/{}", probe.container, probe.word)
        }).collect();
        if let Some(table) = injection.table.as_ref().filter(|table| !table.is_empty()) {
            let declared: Vec<String> = accepted(table).probers.iter().map(|(path, _)| path.to_string()).collect();
            for key in &keys {
                prop_assert!(declared.contains(key), "{} is not in {}", key, table);
                let path = format!("\"path\":\"{key}\"");
                prop_assert!(injection.pod.to_string().contains(&path));
            }
        } else {
            prop_assert!(keys.is_empty());
        }
    }

    #[test]
    fn unrelated_fields_are_preserved(pod in pod(), flags in select(FLAGS.to_vec())) {
        let injection = apply(&pod, PodContext::default(), &settings(flags)).expect("a Pod");
        let ours = |container: &str, word: &str| injection.probes.iter().any(|probe| {
            probe.container == container && probe.word == word && probe.result == ProbeResult::Rewritten
        });
        prop_assert_eq!(rest(&injection.pod, "app-health-proxy", &ours), rest(&pod, "app-health-proxy", &ours));
    }

    #[test]
    fn a_container_added_by_a_later_webhook_is_rewritten(pod in pod(), late in container(vec!["late"]), port in select(vec!["", "--status-port 16020"])) {
        let first = apply(&pod, PodContext::default(), &settings("")).expect("a Pod");
        let mut more = first.pod.clone();
        more["spec"]["containers"].as_array_mut().expect("containers").push(late);
        let settings = settings(port);
        let second = apply(&more, PodContext::default(), &settings).expect("a Pod");
        let third = apply(&second.pod, PodContext::default(), &settings).expect("a Pod");
        prop_assert_eq!(third.pod.to_string(), second.pod.to_string());
        if let Some(table) = second.table.as_ref().filter(|table| !table.is_empty()) {
            let now: Vec<String> = accepted(table).probers.iter().map(|(path, _)| path.to_string()).collect();
            let before = first.table.as_deref().filter(|table| !table.is_empty()).map(accepted);
            for (path, _) in before.iter().flat_map(|table| table.probers.iter()) {
                prop_assert!(now.contains(&path.to_string()));
            }
        }
    }
}
