//! What is tried, in order; each step leaves the webhook running.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use app_health::webhook::authority::Authority;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::cluster::{Cluster, Process, free_port, workspace};
use crate::late;
use crate::webhook_kit::{Call, client, page};

/// Name and deed.
type Step = (&'static str, fn(&mut World));

/// All of them.
pub(crate) const STEPS: [Step; 13] = [
    ("manifests are accepted", manifests),
    ("the webhook becomes ready with its own rights alone", ready),
    ("a Pod is injected, its warnings are shown", injected),
    ("a dry run stores nothing", dry_run),
    ("namespaces and labels choose", chosen),
    ("Pod Security restricted takes the sidecar", restricted),
    ("goldens are accepted", goldens),
    ("kubectl reads what is written", strings),
    ("a container of a later webhook is rewritten", reinvoked),
    ("a busy or silent webhook is handled by the policy", policy),
    ("a wiped caBundle comes back", wiped),
    ("another CA under load fails no review", rotated),
    ("with all replicas dead the rest lives, and it heals", dead),
];

const NAMESPACE: &str = "app-health-system";
const CONFIGURATION: &str = "mutatingwebhookconfiguration/app-health";

/// The cluster, and our webhook in front of it.
pub(crate) struct World {
    cluster: Arc<Cluster>,
    webhook: Option<Process>,
    address: SocketAddr,
    monitoring: SocketAddr,
}

impl World {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Self {
            cluster: Arc::new(cluster),
            webhook: None,
            address: loopback(free_port()),
            monitoring: loopback(free_port()),
        }
    }

    fn start(&self, name: &str, address: SocketAddr, monitoring: SocketAddr) -> Process {
        Process::start(
            Command::new(env!("CARGO_BIN_EXE_app-health"))
                .arg("webhook")
                .args([
                    "--address",
                    &address.to_string(),
                    "--monitoring-address",
                    &monitoring.to_string(),
                    "--shutdown-grace",
                    "1s",
                ])
                .env("KUBECONFIG", self.cluster.kubeconfig("webhook"))
                .env("POD_NAMESPACE", NAMESPACE),
            &self.cluster.folder.join(name),
        )
    }

    fn wait_until(&self, what: &str, seconds: u32, done: impl Fn() -> bool) {
        for _ in 0..seconds * 5 {
            if done() {
                return;
            }
            sleep(Duration::from_millis(200));
        }
        panic!("{what}: {}\n{}", self.cluster.log("webhook.log"), self.cluster.log("api-server.log"));
    }

    fn is_ready(&self, monitoring: SocketAddr) -> bool {
        page(monitoring, "/healthz/ready").is_ok_and(|(status, _)| status == 200)
    }

    fn bundle(&self) -> String {
        let configuration = self.cluster.get(&[CONFIGURATION]);
        let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(bundle).expect("base64")).expect("PEM")
    }

    fn create(&self, pod: &Value) -> std::process::Output {
        self.cluster.kubectl(&["create", "-f", "-"], &pod.to_string())
    }
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{
            "name": "app", "image": "shop:1", "ports": [{"name": "http", "containerPort": 8080}],
            "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}},
        }]},
    })
}

fn is_injected(pod: &Value) -> bool {
    let path = &pod["spec"]["containers"][0]["livenessProbe"]["httpGet"]["path"];
    let there = pod["spec"]["initContainers"][0]["name"] == "app-health-proxy";
    assert_eq!(there, path == "/app-health/app/livez", "half an injection: {pod}");
    there
}

/// Every object of the shipped manifests passes; then those of `base` are there, but for the Service's address.
fn manifests(world: &mut World) {
    let cluster = &world.cluster;
    cluster.done(&["create", "namespace", NAMESPACE], "");
    for folder in ["base", "overlays/cert-manager", "overlays/client-ca", "overlays/rewrite-only"] {
        let all = cluster.kustomize(folder);
        // cert-manager's kinds are known to clusters that have it.
        let ours: Vec<&str> =
            all.split("\n---\n").filter(|object| !object.contains("cert-manager.io/v1\n")).collect();
        let (_, warnings) = cluster.done(&["apply", "--dry-run=server", "-f", "-"], &ours.join("\n---\n"));
        assert!(!warnings.contains("PodSecurity"), "{folder}: {warnings}");
    }
    let base = cluster.kustomize("base");
    cluster.done(&["apply", "-f", "-"], &base);
    cluster.done(&["delete", "service", "app-health-webhook", "-n", NAMESPACE], "");
    let port = world.address.port();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "app-health-webhook", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    cluster.done(&["apply", "-f", "-"], &service.to_string());
    let patch: Vec<Value> = (0..2)
        .map(|index| json!({"op": "replace", "path": format!("/webhooks/{index}/clientConfig/service/port"), "value": port}))
        .collect();
    cluster.done(&["patch", CONFIGURATION, "--type=json", "-p", &Value::from(patch).to_string()], "");
    for namespace in ["shop", "restricted"] {
        cluster.done(&["create", "namespace", namespace], "");
        cluster.done(&["label", "namespace", namespace, "app-health.io/injection=enabled"], "");
    }
    cluster.done(&["label", "namespace", "restricted", "pod-security.kubernetes.io/enforce=restricted"], "");
}

/// Two replicas share one CA; neither may do more than the manifests say.
fn ready(world: &mut World) {
    world.webhook = Some(world.start("webhook.log", world.address, world.monitoring));
    world.wait_until("ready", 30, || world.is_ready(world.monitoring));
    let other = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let monitoring = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let _other = world.start("other.log", other, monitoring);
    world.wait_until("the other one is ready", 30, || world.is_ready(monitoring));
    for address in [world.address, other] {
        Call::new(address, &client(&world.bundle(), None))
            .expect("a leaf of the CA that the API server knows");
    }
    for arguments in [
        &["get", "pods", "-A"][..],
        &["get", "nodes"],
        &["get", "secrets", "-n", NAMESPACE],
        &["delete", "secret", "app-health-webhook-ca", "-n", NAMESPACE],
        &["get", "mutatingwebhookconfigurations"],
    ] {
        let refused = world.cluster.kubectl_as("webhook", arguments, "");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("forbidden"), "{arguments:?}");
    }
}

fn injected(world: &mut World) {
    let mut warned = pod("shop", "injected");
    warned["spec"]["containers"][0]["readinessProbe"] =
        json!({"tcpSocket": {"port": 5432, "host": "db.test"}});
    let output = world.create(&warned);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let words =
        "Warning: app-health: app.readinessProbe: host \"db.test\": kubelet dials that, not the Pod (host)";
    assert!(stderr.contains(words), "{stderr}");
    let stored = world.cluster.get(&["pod/injected", "-n", "shop"]);
    assert!(is_injected(&stored));
    assert_eq!(stored["spec"]["containers"][0]["livenessProbe"]["timeoutSeconds"], 2);
    assert_eq!(stored["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["host"], "db.test");
    let table = stored["spec"]["initContainers"][0]["env"]
        .as_array()
        .expect("env")
        .iter()
        .find(|env| env["name"] == "ISTIO_KUBE_APP_PROBERS");
    let expected = r#"{"/app-health/app/livez":{"httpGet":{"path":"/live","port":8080,"scheme":"HTTP"},"timeoutSeconds":1}}"#;
    assert_eq!(table.expect("the table")["value"], expected);
    let template = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("", "")["spec"]}},
    });
    assert!(world.create(&template).status.success(), "other kinds are not looked at");
}

fn dry_run(world: &mut World) {
    let pod = pod("shop", "dry").to_string();
    let (shown, _) = world.cluster.done(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod);
    assert!(is_injected(&serde_json::from_str(&shown).expect("JSON")));
    assert!(!world.cluster.kubectl(&["get", "pod", "dry", "-n", "shop"], "").status.success());
}

fn chosen(world: &mut World) {
    let inject = "sidecar.istio.io/inject";
    for (namespace, label, expected) in [
        ("default", None, false),
        ("default", Some("true"), true),
        ("default", Some("false"), false),
        ("shop", Some("false"), false),
        ("shop", Some("true"), true),
        ("kube-system", Some("true"), false),
        ("kube-public", Some("true"), false),
    ] {
        let mut pod = pod(namespace, "chosen");
        if let Some(label) = label {
            pod["metadata"]["labels"][inject] = label.into();
        }
        let (shown, _) =
            world.cluster.done(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
        assert_eq!(
            is_injected(&serde_json::from_str(&shown).expect("JSON")),
            expected,
            "{namespace} {label:?}"
        );
    }
}

fn restricted(world: &mut World) {
    let mut pod = pod("restricted", "restricted");
    pod["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    let (shown, _) =
        world.cluster.done(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
    assert!(is_injected(&serde_json::from_str(&shown).expect("JSON")));
}

/// Whatever the API server takes before, it takes after; and kubectl reads the same values that we read.
fn goldens(world: &mut World) {
    let folder = workspace().join("tests/testdata/inject");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("goldens").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "json"));
    files.sort();
    let mut taken = 0;
    for file in files {
        let golden = format!("{}.injected", file.display());
        let create = |file: &str| world.cluster.kubectl(&["create", "--dry-run=server", "-f", file], "");
        if !create(file.to_str().expect("UTF-8")).status.success() {
            continue;
        }
        // JSON has no comments: the notes on top are for YAML alone.
        let text = fs::read_to_string(&golden).expect("a golden");
        let text: String =
            text.lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
        let after = world.cluster.kubectl(&["create", "--dry-run=server", "-f", "-"], &text);
        assert!(after.status.success(), "{golden}: {}", String::from_utf8_lossy(&after.stderr));
        taken += 1;
    }
    assert!(taken >= 60, "{taken} goldens are Pods that an API server takes");
}

/// The same strings, whatever they look like.
fn strings(world: &mut World) {
    let strings: Vec<String> =
        serde_json::from_str(include_str!("../../../tests/testdata/strings.json")).expect("JSON");
    let data: serde_json::Map<String, Value> =
        strings.iter().enumerate().map(|(index, text)| (format!("s{index}"), text.as_str().into())).collect();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "strings"}, "data": data});
    let written = app_health::yaml::text(&map);
    let (read, _) = world.cluster.done(&["annotate", "--local", "-f", "-", "zz=1", "-o", "json"], &written);
    let read: Value = serde_json::from_str(&read).expect("JSON");
    assert_eq!(read["data"], map["data"], "{written}");
}

fn reinvoked(world: &mut World) {
    let runtime = late::start(&world.cluster);
    let mut pod = pod("shop", "late");
    pod["metadata"]["labels"] = json!({"late": "please"});
    let created =
        || world.cluster.kubectl(&["create", "--dry-run=server", "-o", "json", "-f", "-"], &pod.to_string());
    // The API server takes a moment to know another webhook.
    world.wait_until("the late webhook is called", 20, || {
        String::from_utf8_lossy(&created().stdout).contains("late:1")
    });
    let created: Value = serde_json::from_slice(&created().stdout).expect("JSON");
    let late = &created["spec"]["containers"][1];
    assert_eq!(late["livenessProbe"]["httpGet"]["path"], "/app-health/late/livez", "{created}");
    assert!(
        created.to_string().contains(r#"\"/app-health/late/livez\":{\"tcpSocket\":{\"port\":9090}"#),
        "{created}"
    );
    assert!(is_injected(&created), "and the first one still is");
    world.cluster.done(&["delete", "mutatingwebhookconfiguration", "zz-late"], "");
    runtime.shutdown_background();
}

fn policy(world: &mut World) {
    let head =
        b"POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let trusted = client(&world.bundle(), None);
    let busy = || -> Vec<Call> {
        let mut calls: Vec<Call> =
            (0..64).map(|_| Call::new(world.address, &trusted).expect("a connection")).collect();
        calls.iter_mut().for_each(|call| call.send(head).expect("sent"));
        calls
    };
    let held = busy();
    let refused = world.create(&pod("shop", "refused"));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains("failed calling webhook"), "{stderr}");
    drop(held);
    let silent = world.webhook.as_ref().expect("it runs");
    silent.signal("-STOP");
    let refused = world.create(&pod("shop", "refused"));
    silent.signal("-CONT");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains("failed calling webhook"), "{stderr}");
    let set = |value: &str| {
        let patch: Vec<Value> =
            (0..2).map(|index| json!({"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": value})).collect();
        world
            .cluster
            .done(&["patch", CONFIGURATION, "--type=json", "-p", &Value::from(patch).to_string()], "");
        // The API server takes a moment to know it.
        sleep(Duration::from_secs(3));
    };
    set("Ignore");
    let held = busy();
    let taken = world.create(&pod("shop", "ignored"));
    drop(held);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert!(!is_injected(&world.cluster.get(&["pod/ignored", "-n", "shop"])), "it starts with raw probes");
    set("Fail");
    assert!(world.create(&pod("shop", "after")).status.success());
}

fn wiped(world: &mut World) {
    let bundle = world.bundle();
    assert!(bundle.contains("BEGIN CERTIFICATE"));
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]).to_string();
    world.cluster.done(&["patch", CONFIGURATION, "--type=json", "-p", &patch], "");
    world.wait_until("the caBundle is back", 75, || world.bundle() == bundle);
}

/// The Secret gets a next CA that was made long enough ago: the webhook announces it, and then signs with it.
fn rotated(world: &mut World) {
    let secret = world.cluster.get(&["secret/app-health-webhook-ca", "-n", NAMESPACE]);
    let text = STANDARD.decode(secret["data"]["authority.json"].as_str().expect("base64")).expect("base64");
    let mut authority: Authority = serde_json::from_slice(&text).expect("an authority");
    let made = OffsetDateTime::now_utc() - time::Duration::minutes(11);
    let next = Authority::new(made).expect("an authority").current;
    authority.next = Some(next.clone());
    let mut changed = secret;
    changed["data"]["authority.json"] =
        STANDARD.encode(serde_json::to_string(&authority).expect("JSON")).into();
    world.cluster.done(&["replace", "-f", "-"], &changed.to_string());

    let stop = Arc::new(AtomicBool::new(false));
    let caller = || {
        let (stop, cluster) = (stop.clone(), world.cluster.clone());
        thread::spawn(move || {
            let (mut reviews, mut errors) = (0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let created = cluster
                    .kubectl(&["create", "--dry-run=server", "-f", "-"], &pod("shop", "load").to_string());
                reviews += 1;
                if !created.status.success() {
                    errors.push(String::from_utf8_lossy(&created.stderr).into_owned());
                }
            }
            (reviews, errors)
        })
    };
    let callers = [caller(), caller()];
    let only_next = client(&next.certificate, None);
    world.wait_until("a leaf of the next CA", 200, || Call::new(world.address, &only_next).is_ok());
    assert!(world.bundle().contains(&authority.current.certificate), "the former one is still known");
    sleep(Duration::from_secs(3));
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let (reviews, errors) = caller.join().expect("a caller ends");
        assert!(reviews > 20 && errors.is_empty(), "{reviews} reviews, {errors:?}");
    }
}

fn dead(world: &mut World) {
    let mut webhook = world.webhook.take().expect("it runs");
    webhook.signal("-TERM");
    assert_eq!(webhook.wait(), Some(0));
    let mut labelled = pod("kube-system", "lives");
    labelled["metadata"]["labels"] = json!({"sidecar.istio.io/inject": "true"});
    assert!(world.create(&labelled).status.success());
    let mut own = pod(NAMESPACE, "lives");
    own["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert!(world.create(&own).status.success(), "its own Pods can start");
    assert!(!world.create(&pod("shop", "waits")).status.success(), "opted-in ones wait for it");
    world.webhook = Some(world.start("webhook.log", world.address, world.monitoring));
    world.wait_until("healed", 30, || world.create(&pod("shop", "waits")).status.success());
    assert!(is_injected(&world.cluster.get(&["pod/waits", "-n", "shop"])));
}
