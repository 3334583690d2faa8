//! The steps of the test, in order. Each step leaves both replicas running.

use std::thread::sleep;

use kubernetes_tests::manifests;
use serde_json::{Value, json};

use super::entries::annotation;
use super::replica::Replica;
use super::{DISCONNECT_GRACE, Fixture, NAMESPACE, SYSTEM, conflicts, entries, outages, overload, set};
use crate::wait_until;

/// The name of a step, and the function that runs it.
type Step = (&'static str, fn(&mut Fixture));

pub(crate) const STEPS: [Step; 15] = [
    ("manifests are accepted and grant only the necessary permissions", apply_manifests),
    ("two replicas become ready", ready),
    ("an agent registers and every replica serves its endpoint", registered),
    ("a report to one replica takes effect on the other", reported),
    ("an agent reconnects to the other replica", moved),
    ("a manual entry gets the health of its agent", entries::manual),
    ("entries of another controller are read and never written", entries::foreign),
    ("an entry that a user deletes is created again", entries::deleted),
    ("write conflicts lose no change of any client", conflicts::conflicting_writes),
    ("the API server freezes for a minute", outages::frozen),
    ("the API server is killed", outages::restarted),
    ("a replica loses the API server", outages::lost_by_one_replica),
    ("the API server is overloaded for a replica", overload::overloaded),
    ("a replica is killed", outages::killed),
    ("a replica terminates", outages::terminated),
];

fn apply_manifests(fixture: &mut Fixture) {
    let cluster = &fixture.cluster;
    let crds = manifests("discovery/crds.yaml");
    cluster.kubectl_ok(&["apply", "-f", crds.to_str().expect("UTF-8")], "");
    cluster.apply(&cluster.kustomize("base"));
    let discovery = cluster.kustomize("discovery");
    let (_, warnings) = cluster.kubectl_ok(&["apply", "--dry-run=server", "-f", "-"], &discovery);
    assert!(!warnings.contains("PodSecurity"), "{warnings}");
    cluster.apply(&discovery);
    cluster.create_namespace(NAMESPACE, &[]);
    wait_until("API server serves the custom resources", || {
        cluster.kubectl(&["get", "workloadgroups,workloadentries,serviceentries", "-A"], "").status.success()
    });
    for arguments in [
        &["get", "secrets", "-A"][..],
        &["get", "pods", "-A"],
        &["get", "leases", "-n", NAMESPACE],
        &["get", "leases", "-n", "kube-system"],
        &["delete", "workloadgroup", "x", "-n", NAMESPACE],
        &["delete", "serviceentry", "x", "-n", NAMESPACE],
    ] {
        let refused = cluster.kubectl_as("discovery", arguments, "");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("forbidden"), "{arguments:?}");
    }
    // Leases of Pods that do not return are deleted after minutes, so no step waits for that.
    let may = cluster.kubectl_as("discovery", &["auth", "can-i", "delete", "leases", "-n", SYSTEM], "");
    assert_eq!(String::from_utf8_lossy(&may.stdout).trim(), "yes");
    fixture.apply(
        "WorkloadGroup",
        "payments",
        &json!({}),
        &json!({
            "metadata": {"labels": {"app": "payments"}, "annotations": {"team": "billing"}},
            "template": {"ports": {"http": 8080}, "serviceAccount": "default"},
            "probe": {"periodSeconds": 5, "httpGet": {"path": "/readyz", "port": 8080}},
        }),
    );
    fixture.apply(
        "ServiceEntry",
        "payments",
        &json!({}),
        &json!({
            "hosts": ["payments.shop.internal"], "resolution": "STATIC", "location": "MESH_INTERNAL",
            "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
            "workloadSelector": {"labels": {"app": "payments"}},
        }),
    );
}

fn ready(fixture: &mut Fixture) {
    fixture.a = Some(Replica::start(&fixture.cluster, "a", DISCONNECT_GRACE));
    fixture.b = Some(Replica::start(&fixture.cluster, "b", DISCONNECT_GRACE));
    wait_until("both replicas are ready", || fixture.a().is_ready() && fixture.b().is_ready());
    wait_until("each replica has a Lease", || {
        ["a", "b"]
            .iter()
            .all(|name| fixture.cluster.kubectl(&["get", "lease", name, "-n", SYSTEM], "").status.success())
    });
}

fn registered(fixture: &mut Fixture) {
    let agent = fixture.a().connect("payments", "", "10.0.0.1");
    wait_until("entry exists without a verdict", || {
        fixture.condition("payments-10.0.0.1").as_deref() == Some("Unknown AwaitingFirstReport")
    });
    assert!(fixture.a().endpoints().is_empty() && fixture.b().endpoints().is_empty());
    let generation = agent.report(true);
    wait_until("endpoint served by the other replica", || fixture.b().endpoints() == set(&["10.0.0.1"]));
    wait_until("report acknowledged", || agent.acknowledged() == Some(generation));
    let entry = fixture.entry("payments-10.0.0.1").expect("the entry exists");
    for (name, expected) in [
        ("istio.io/autoRegistrationGroup", "payments"),
        ("istio.io/workloadController", "app-health/a"),
        ("app-health.io/session", "1"),
        ("proxy.istio.io/health-checks-enabled", "true"),
        ("team", "billing"),
    ] {
        assert_eq!(annotation(&entry, name), expected, "{entry:#}");
    }
    assert_eq!(entry["spec"]["address"], "10.0.0.1");
    assert_eq!(entry["spec"]["labels"]["app"], "payments");
    let (_, view) = fixture.b().http_get("/debug/workloads?namespace=shop");
    let view: Value = serde_json::from_str(&view).expect("JSON");
    assert_eq!((&view["instance"], &view["store"]), (&json!("b"), &json!("kubernetes")));
    assert_eq!(view["workloads"][0]["controller"], "app-health/a", "{view:#}");
    assert_eq!(fixture.condition("payments-10.0.0.1").as_deref(), Some("True ProbeSucceeded"));
    agent.close();
    wait_until("entry and endpoint removed after the grace period", || {
        fixture.entry("payments-10.0.0.1").is_none()
            && fixture.a().endpoints().is_empty()
            && fixture.b().endpoints().is_empty()
    });
}

fn reported(fixture: &mut Fixture) {
    let agents = [("a", "10.0.1.1"), ("b", "10.0.1.2")].map(|(replica, ip)| {
        let replica = if replica == "a" { fixture.a() } else { fixture.b() };
        let agent = replica.connect("payments", "", ip);
        agent.report(true);
        agent
    });
    let both = set(&["10.0.1.1", "10.0.1.2"]);
    wait_until("both endpoints served by both replicas", || {
        fixture.a().endpoints() == both && fixture.b().endpoints() == both
    });
    for (is_healthy, expected) in [(false, set(&["10.0.1.2"])), (true, both)] {
        let generation = agents[0].report(is_healthy);
        wait_until("change served by the other replica", || fixture.b().endpoints() == expected);
        wait_until("report acknowledged", || agents[0].acknowledged() == Some(generation));
    }
    agents.into_iter().for_each(super::agent::Agent::close);
    wait_until("both endpoints removed", || {
        fixture.a().endpoints().is_empty() && fixture.b().endpoints().is_empty()
    });
}

fn moved(fixture: &mut Fixture) {
    let name = "payments-10.0.2.1";
    let first = fixture.a().connect("payments", "", "10.0.2.1");
    first.report(true);
    wait_until("served", || fixture.b().endpoints() == set(&["10.0.2.1"]));
    // The first connection stays open, so the server does not know that the machine has
    // reconnected.
    let second = fixture.b().connect("payments", "", "10.0.2.1");
    wait_until("second stream has the next session number", || second.session() == 2);
    let generation = second.report(true);
    wait_until("older stream ended by the server", || {
        first.closed().is_some_and(|text| text.contains("superseded"))
    });
    wait_until("acknowledged", || second.acknowledged() == Some(generation));
    let entry = fixture.entry(name).expect("the entry exists");
    assert_eq!(annotation(&entry, "istio.io/workloadController"), "app-health/b");
    assert_eq!(annotation(&entry, "app-health.io/session"), "2");
    // Neither a report on the old stream nor its end has an effect.
    first.report(false);
    first.close();
    sleep(DISCONNECT_GRACE * 2);
    fixture.process_all_writes();
    assert_eq!(fixture.condition(name).as_deref(), Some("True ProbeSucceeded"));
    for replica in [fixture.a(), fixture.b()] {
        assert_eq!(replica.endpoints(), set(&["10.0.2.1"]));
    }
    second.report(false);
    wait_until("report on the newer stream takes effect", || {
        fixture.a().endpoints().is_empty() && fixture.b().endpoints().is_empty()
    });
    second.close();
    wait_until("gone", || fixture.entry(name).is_none());
}
