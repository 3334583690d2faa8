//! What is tried, in order; each step leaves both replicas running.

use std::thread::sleep;
use std::time::Duration;

use kubernetes_tests::kubernetes::manifests as shipped;
use serde_json::{Value, json};

use super::entries::annotation;
use super::replica::Replica;
use super::{NAMESPACE, SYSTEM, World, conflicts, entries, outages, set};
use crate::within;

/// Name and deed.
type Step = (&'static str, fn(&mut World));

/// All of them.
pub(crate) const STEPS: [Step; 13] = [
    ("manifests are accepted, and give no right too much", manifests),
    ("two replicas become ready", ready),
    ("an agent registers, and every replica serves it", registered),
    ("a report through one replica is seen at the other", reported),
    ("an agent moves to the other replica", moved),
    ("a manual entry is reported on", entries::manual),
    ("entries of another controller are read and never written", entries::foreign),
    ("an entry that is deleted by hand comes back", entries::deleted),
    ("conflicts lose nothing of anybody", conflicts::hammered),
    ("the API server freezes for a minute", outages::frozen),
    ("the API server is killed", outages::restarted),
    ("a replica is killed", outages::killed),
    ("a replica is ended", outages::ended),
];

/// As short as it may be: what is under test is who acts, and that nobody acts too early.
pub(super) const GRACE: Duration = Duration::from_secs(3);

fn manifests(world: &mut World) {
    let cluster = &world.cluster;
    let crds = shipped("discovery/crds.yaml");
    cluster.done(&["apply", "-f", crds.to_str().expect("UTF-8")], "");
    cluster.apply(&cluster.kustomize("base"));
    let discovery = cluster.kustomize("discovery");
    let (_, warnings) = cluster.done(&["apply", "--dry-run=server", "-f", "-"], &discovery);
    assert!(!warnings.contains("PodSecurity"), "{warnings}");
    cluster.apply(&discovery);
    cluster.create_namespace(NAMESPACE, &[]);
    within("the kinds are served", 30, || {
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
    // Leases of Pods that do not come back are deleted after minutes, which no step waits for.
    let may = cluster.kubectl_as("discovery", &["auth", "can-i", "delete", "leases", "-n", SYSTEM], "");
    assert_eq!(String::from_utf8_lossy(&may.stdout).trim(), "yes");
    world.apply(
        "WorkloadGroup",
        "payments",
        &json!({}),
        &json!({
            "metadata": {"labels": {"app": "payments"}, "annotations": {"team": "billing"}},
            "template": {"ports": {"http": 8080}, "serviceAccount": "default"},
            "probe": {"periodSeconds": 5, "httpGet": {"path": "/readyz", "port": 8080}},
        }),
    );
    world.apply(
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

fn ready(world: &mut World) {
    world.a = Some(Replica::start(&world.cluster, "a", GRACE));
    world.b = Some(Replica::start(&world.cluster, "b", GRACE));
    within("both are ready", 30, || world.a().is_ready() && world.b().is_ready());
    within("each has a lease", 30, || {
        ["a", "b"]
            .iter()
            .all(|name| world.cluster.kubectl(&["get", "lease", name, "-n", SYSTEM], "").status.success())
    });
}

fn registered(world: &mut World) {
    let agent = world.a().connect("payments", "", "10.0.0.1");
    within("the entry is there, without a verdict", 10, || {
        world.condition("payments-10.0.0.1").as_deref() == Some("Unknown AwaitingFirstReport")
    });
    assert!(world.a().endpoints().is_empty() && world.b().endpoints().is_empty());
    let generation = agent.report(true);
    within("it is served by the other one", 10, || world.b().endpoints() == set(&["10.0.0.1"]));
    within("and acknowledged", 10, || agent.acknowledged() == Some(generation));
    let entry = world.entry("payments-10.0.0.1").expect("it is there");
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
    let (_, view) = world.b().page("/debug/workloads?namespace=shop");
    let view: Value = serde_json::from_str(&view).expect("JSON");
    assert_eq!((&view["instance"], &view["store"]), (&json!("b"), &json!("kubernetes")));
    assert_eq!(view["workloads"][0]["controller"], "app-health/a", "{view:#}");
    assert_eq!(world.condition("payments-10.0.0.1").as_deref(), Some("True ProbeSucceeded"));
    agent.close();
    within("the grace over, it is gone everywhere", 20, || {
        world.entry("payments-10.0.0.1").is_none()
            && world.a().endpoints().is_empty()
            && world.b().endpoints().is_empty()
    });
}

fn reported(world: &mut World) {
    let agents = [("a", "10.0.1.1"), ("b", "10.0.1.2")].map(|(replica, ip)| {
        let replica = if replica == "a" { world.a() } else { world.b() };
        let agent = replica.connect("payments", "", ip);
        agent.report(true);
        agent
    });
    let both = set(&["10.0.1.1", "10.0.1.2"]);
    within("both are served by both", 10, || world.a().endpoints() == both && world.b().endpoints() == both);
    for (is_healthy, expected) in [(false, set(&["10.0.1.2"])), (true, both)] {
        let generation = agents[0].report(is_healthy);
        within("the other replica follows", 10, || world.b().endpoints() == expected);
        within("it is acknowledged", 10, || agents[0].acknowledged() == Some(generation));
    }
    agents.into_iter().for_each(super::agent::Agent::close);
    within("both are gone", 20, || world.a().endpoints().is_empty() && world.b().endpoints().is_empty());
}

fn moved(world: &mut World) {
    let name = "payments-10.0.2.1";
    let first = world.a().connect("payments", "", "10.0.2.1");
    first.report(true);
    within("served", 10, || world.b().endpoints() == set(&["10.0.2.1"]));
    // The first connection is not closed: nobody told the server that the machine dialled anew.
    let second = world.b().connect("payments", "", "10.0.2.1");
    within("the session is the next one", 10, || second.session() == 2);
    let generation = second.report(true);
    within("the older stream is ended", 10, || {
        first.closed().is_some_and(|text| text.contains("superseded"))
    });
    within("acknowledged", 10, || second.acknowledged() == Some(generation));
    let entry = world.entry(name).expect("it is there");
    assert_eq!(annotation(&entry, "istio.io/workloadController"), "app-health/b");
    assert_eq!(annotation(&entry, "app-health.io/session"), "2");
    // What the old stream still says is of no effect, nor is its end.
    first.report(false);
    first.close();
    sleep(GRACE * 2);
    assert_eq!(world.condition(name).as_deref(), Some("True ProbeSucceeded"));
    for replica in [world.a(), world.b()] {
        assert_eq!(replica.endpoints(), set(&["10.0.2.1"]));
    }
    second.report(false);
    within("the newer stream decides", 10, || {
        world.a().endpoints().is_empty() && world.b().endpoints().is_empty()
    });
    second.close();
    within("gone", 20, || world.entry(name).is_none());
}
