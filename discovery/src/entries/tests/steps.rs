//! Parses the words of the test steps into configurations, streams and reports.

use serde_json::json;
use workload_health::WorkloadGroup;

use super::*;
use crate::objects::{Group, ManualEntry, Spec};

fn group(probe: Option<serde_json::Value>, service_account: Option<&str>) -> Arc<Group> {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup",
        "metadata": {"name": "payments", "namespace": "shop"},
        "spec": {
            "metadata": {"labels": {"app": "payments"}},
            "template": {"ports": {"http": 8080}, "serviceAccount": service_account},
            "probe": probe,
        },
    });
    let group = WorkloadGroup::parse(&document).expect("a valid group").value;
    Arc::new(Group::new(Key::new("shop", "payments"), group))
}

/// Builds a configuration from words: `group`, `probe` (a group with a probe), `account` (a group
/// with the service account `pay`), `manual`, `checked` and `moved` (manual entries), `taken` (a
/// manual entry with the name of the auto-registered one), `incomplete`.
pub(super) fn config(words: &str) -> Config {
    let mut config = Config::default();
    let entry = |address: &str, health_checks| {
        let spec = Arc::new(Spec { address: address.to_owned(), ..Spec::default() });
        Arc::new(ManualEntry { spec, annotations: BTreeMap::new(), health_checks })
    };
    let key = Key::new("shop", "payments");
    for word in words.split_whitespace() {
        match word {
            "group" => drop(config.groups.insert(key.clone(), group(None, None))),
            "probe" => {
                let probe = json!({"periodSeconds": 9, "timeoutSeconds": 1, "failureThreshold": 2, "httpGet": {"port": 80}});
                config.groups.insert(key.clone(), group(Some(probe), None));
            }
            "account" => drop(config.groups.insert(key.clone(), group(None, Some("pay")))),
            "manual" => drop(config.entries.insert(manual(), entry("10.0.0.7", None))),
            "checked" => drop(config.entries.insert(manual(), entry("10.0.0.7", Some(true)))),
            "moved" => drop(config.entries.insert(manual(), entry("10.0.0.8", Some(true)))),
            "taken" => drop(config.entries.insert(auto(), entry("10.0.0.7", None))),
            "incomplete" => config.incomplete = true,
            _ => panic!("unknown configuration {word}"),
        }
    }
    config
}

pub(super) fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

/// Builds the first request of a stream from words: `ours` (an app-health agent) or `istio`;
/// `entry` (registers by WORKLOAD_ENTRY), `client`, `declares` (a readinessProbe), `probeless`
/// (Istio's agent without one), `labelled`,
/// `nameless`, `far` (another peer address), `mapped`, `as:NAME` (service account of the
/// certificate), `of:NAMESPACE` (namespace of the certificate).
pub(super) fn opened(stream: &str, kind: &[&str], key: &Key) -> Input {
    let mut node = Node {
        id: "sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local".to_owned(),
        namespace: Some("shop".to_owned()),
        group: Some("payments".to_owned()),
        ..Node::default()
    };
    let (mut peer, mut identity) = ("10.0.0.7:4000", None);
    for kind in kind {
        match *kind {
            "ours" => node.app_health = true,
            "istio" => {}
            "entry" => (node.group, node.workload_entry) = (None, Some(key.name.clone())),
            "client" => node.group = None,
            "declares" => (node.proxy_config, node.readiness_probe) = (true, true),
            "probeless" => node.proxy_config = true,
            "labelled" => node.labels = BTreeMap::from([("version".to_owned(), "v2".to_owned())]),
            "nameless" => node.namespace = None,
            "far" => peer = "10.0.0.8:4000",
            "mapped" => peer = "[::ffff:10.0.0.7]:4000",
            other => {
                let (namespace, service_account) = match other.split_once(':').expect("a kind of stream") {
                    ("as", name) => ("shop", name),
                    (_, namespace) => (namespace, "pay"),
                };
                let (namespace, service_account) = (namespace.to_owned(), service_account.to_owned());
                identity = Some(Identity { namespace, service_account });
            }
        }
    }
    let peer = peer.parse().expect("an address");
    Input::Opened { stream: number(stream), peer, identity, node: Box::new(node) }
}

pub(super) fn report(epoch: &str, generation: &str, word: &str) -> HealthReport {
    let (state, reason, ago) = match word {
        "Healthy" => (State::Healthy, "ProbeSucceeded", Some(2_000)),
        "Stalled" => (State::Healthy, "ProbeSucceeded", Some(31_000)),
        "Unhealthy" => (State::Unhealthy, "HttpStatus", Some(2_000)),
        "Draining" | "Terminating" => (State::Unhealthy, word, None),
        "Awaiting" => (State::Unknown, "AwaitingVerdict", None),
        "NoProbe" => (State::Unknown, "NoProbe", None),
        _ => panic!("unknown report {word}"),
    };
    HealthReport {
        epoch: epoch.to_owned(),
        generation: number(generation),
        state,
        reason: reason.to_owned(),
        message: "text".to_owned(),
        since_ms: 0,
        last_probe_ago_ms: ago,
        interval_ms: None,
        verdict_within_ms: None,
    }
}
