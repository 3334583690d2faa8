use clap::Parser;
use serde_json::{Value, json};

use super::*;

/// A parser for only the flags of this module.
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    discovery: DiscoveryArgs,
}

const GROUP: &str = r#"{"apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup",
    "metadata": {"name": "payments", "namespace": "shop"}, "spec": {"template": {"serviceAccount": "pay"}}}"#;

/// Returns the configuration, or the error text.
fn config(flags: &str, file: bool) -> Result<Option<DiscoveryConfig>, String> {
    let words = ["run"].into_iter().chain(flags.split_whitespace());
    let args = Flags::try_parse_from(words).map_err(|error| error.to_string())?.discovery;
    let group = WorkloadGroup::parse(&serde_json::from_str(GROUP).unwrap()).unwrap().value;
    let ip = "10.0.0.7".parse().unwrap();
    discovery_config(args, file.then_some(&group), ip, "vm1", &Environment::default())
        .map_err(|failure| failure.to_string())
}

#[test]
fn rejected_settings() {
    let plain = "--discovery 127.0.0.1:15010 --discovery-plaintext --group g";
    for (flags, words) in [
        ("--discovery 127.0.0.1:1 --group g", "--discovery-ca: --discovery requires"),
        (
            "--discovery 127.0.0.1:1 --group g --discovery-ca /a --discovery-cert /b",
            "--discovery-key: --discovery",
        ),
        (
            "--discovery 127.0.0.1:1 --discovery-plaintext",
            "set --workload-group, --group or --workload-entry",
        ),
        ("--discovery 127.0.0.1 --discovery-plaintext --group g", "must be HOST:PORT"),
        ("--discovery 127.0.0.1:0 --discovery-plaintext --group g", "must be HOST:PORT"),
        ("--discovery ::1:1 --discovery-plaintext --group g", "must be HOST:PORT"),
        ("--discovery [a]:1 --discovery-plaintext --group g", "must be HOST:PORT"),
        ("--discovery a@b:1 --discovery-plaintext --group g", "must be HOST:PORT"),
        (
            "--discovery 10.0.0.1:1 --discovery-plaintext --group g",
            "10.0.0.1:1: --discovery-plaintext is allowed only for loopback",
        ),
        ("--discovery istiod:1 --discovery-plaintext --group g", "or --insecure"),
        (
            &format!("{plain} --discovery-ca /a"),
            "--discovery-ca and --discovery-plaintext are mutually exclusive",
        ),
        (&format!("{plain} --workload-entry e"), "--group and --workload-entry are mutually exclusive"),
        (&format!("{plain} --heartbeat 0"), "'--heartbeat <DURATION>': must be 1s or more"),
        (&format!("{plain} --heartbeat 60"), "'--heartbeat <DURATION>': must be a duration"),
        (&format!("{plain} --istio-heartbeat 10ms"), "'--istio-heartbeat <DURATION>': must be 0 or"),
        (&format!("{plain} --label a"), "invalid value 'a' for '--label <KEY=VALUE>': must be KEY=VALUE"),
        (&format!("{plain} --locality a/b/c/d"), "must be REGION[/ZONE[/SUBZONE]]"),
        (&format!("{plain} --discovery-san spiffe"), ""),
        (
            &format!("{plain} --discovery-token-file /none"),
            "--discovery-token-file = \"/none\": No such file",
        ),
        (&format!("{plain} --discovery-token-file /dev/null"), "must contain one token"),
        (
            "--discovery 127.0.0.1:1 --group g --discovery-cert /b --discovery-token-file /none",
            "--discovery-ca: --discovery requires",
        ),
        (&format!("{plain} --network A_b.c"), ""),
        (&format!("{plain} --network a/b"), "must be letters"),
        (&format!("{plain} --namespace a.b"), "must be a DNS-1123 label"),
        (&format!("{plain} --service-account A"), "must be a DNS-1123 subdomain"),
        (&format!("{plain} --locality a//c"), "must be REGION"),
        (&format!("{plain} --discovery-san a/b"), "--discovery-san = \"a/b\": must be a DNS name"),
    ] {
        match config(flags, false) {
            Ok(_) => assert_eq!(words, "", "{flags}"),
            Err(text) => assert!(!words.is_empty() && text.contains(words), "{flags}: {text}"),
        }
    }
}

#[test]
fn nothing_is_reported_without_a_server() {
    assert!(config("--group g --discovery-ca /a", true).unwrap().is_none());
    assert!(config("--heartbeat 0", true).is_err(), "flags are validated even without --discovery");
}

#[test]
fn servers() {
    for (server, endpoint) in [
        ("127.0.0.1:1", Endpoint::Ip("127.0.0.1:1".parse().unwrap())),
        ("[::1]:2", Endpoint::Ip("[::1]:2".parse().unwrap())),
        ("localhost:3", Endpoint::Localhost(3)),
        ("istiod.istio-system.svc:15012", Endpoint::Name("istiod.istio-system.svc".into(), 15012)),
    ] {
        let flags = format!("--discovery {server} --discovery-plaintext --insecure");
        let config = config(&flags, true).unwrap().unwrap();
        assert_eq!((config.servers[0].authority.as_str(), &config.servers[0].endpoint), (server, &endpoint));
    }
}

/// Checks the metadata fields that result from the flags, with and without the WorkloadGroup file.
#[test]
fn node_metadata() {
    type Row<'a> = (&'a str, bool, &'a [(&'a str, Value)]);
    let rows: [Row; 5] = [
        ("--group g", false, &[("AUTO_REGISTER_GROUP", json!("g")), ("NAMESPACE", json!("default"))]),
        ("", true, &[("AUTO_REGISTER_GROUP", json!("payments")), ("NAMESPACE", json!("shop"))]),
        ("--namespace n", true, &[("NAMESPACE", json!("n")), ("SERVICE_ACCOUNT", json!("pay"))]),
        ("--workload-entry e", true, &[("WORKLOAD_ENTRY", json!("e")), ("AUTO_REGISTER_GROUP", Value::Null)]),
        (
            "--group g --service-account s --network n --label a=b,c=",
            false,
            &[
                ("SERVICE_ACCOUNT", json!("s")),
                ("NETWORK", json!("n")),
                ("LABELS", json!({"a": "b", "c": ""})),
                ("INSTANCE_IPS", json!("10.0.0.7")),
                ("CLUSTER_ID", json!("Kubernetes")),
                ("APP_HEALTH", json!({"version": 1})),
            ],
        ),
    ];
    for (flags, file, fields) in rows {
        let flags = format!("--discovery localhost:1 --discovery-plaintext {flags}");
        let node = config(&flags, file).unwrap().unwrap().node;
        for (name, value) in fields {
            assert_eq!(node.metadata.get(*name).unwrap_or(&Value::Null), value, "{flags}: {name}");
        }
    }
    let flags = "--discovery localhost:1 --discovery-plaintext --locality eu/a";
    let node = config(flags, true).unwrap().unwrap().node;
    assert_eq!(node.id, "sidecar~10.0.0.7~vm1.shop~shop.svc.cluster.local");
    assert_eq!(node.locality, Some(["eu", "a", ""].map(str::to_owned)));
}
