//! The API server or a replica is away.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::replica::Replica;
use super::steps::GRACE;
use super::{World, set};
use crate::within;

pub(super) fn frozen(world: &mut World) {
    let agents = ["10.0.6.1", "10.0.6.2", "10.0.6.3"].map(|ip| {
        let agent = world.a().connect("payments", "", ip);
        let generation = agent.report(true);
        within("acknowledged", 10, || agent.acknowledged() == Some(generation));
        agent
    });
    let all = set(&["10.0.6.1", "10.0.6.2", "10.0.6.3"]);
    within("served", 10, || world.b().endpoints() == all);
    world.cluster.signal_api_server(Signal::SIGSTOP);
    let begin = Instant::now();
    let [flips, leaves, stays] = agents;
    let generation = flips.report(false);
    within("the push does not wait", 10, || world.a().endpoints() == set(&["10.0.6.2", "10.0.6.3"]));
    // Its grace ends while nobody can be asked.
    sleep(Duration::from_secs(10));
    leaves.close();
    let (status, body) = world.a().page("/healthz/ready");
    assert!(status == 200 && body.contains("store: API server unreachable"), "{status} {body}");
    while begin.elapsed() < Duration::from_secs(60) {
        assert_eq!(flips.acknowledged(), Some(generation - 1), "what is not stored is not acknowledged");
        assert_eq!(
            world.a().endpoints(),
            set(&["10.0.6.2", "10.0.6.3"]),
            "nothing is removed but by reports"
        );
        assert_eq!(world.b().endpoints(), all, "nobody dies of an API server that is away");
        sleep(Duration::from_millis(500));
    }
    world.cluster.signal_api_server(Signal::SIGCONT);
    within("acknowledged", 30, || flips.acknowledged() == Some(generation));
    within("the other one follows", 30, || !world.b().endpoints().contains("10.0.6.1"));
    within("and who left is gone", 40, || {
        world.entry("payments-10.0.6.2").is_none() && world.b().endpoints() == set(&["10.0.6.3"])
    });
    assert_eq!((flips.closed(), stays.closed()), (None, None));
    flips.close();
    stays.close();
    within("gone", 30, || world.b().endpoints().is_empty());
}

pub(super) fn restarted(world: &mut World) {
    let agent = world.a().connect("payments", "", "10.0.7.1");
    agent.report(true);
    within("served", 10, || world.b().endpoints() == set(&["10.0.7.1"]));
    world.cluster.stop_api_server();
    let generation = agent.report(false);
    let new = world.b().connect("payments", "", "10.0.7.2");
    within("the push does not wait", 10, || world.a().endpoints().is_empty());
    sleep(Duration::from_secs(5));
    assert_eq!(world.b().endpoints(), set(&["10.0.7.1"]), "the cache serves");
    assert_ne!(agent.acknowledged(), Some(generation));
    world.cluster.start_api_server();
    within("acknowledged", 30, || agent.acknowledged() == Some(generation));
    within("the other one follows", 30, || world.b().endpoints().is_empty());
    new.report(true);
    within("who came meanwhile is there", 30, || {
        world.a().endpoints() == set(&["10.0.7.2"]) && world.entry("payments-10.0.7.2").is_some()
    });
    agent.close();
    new.close();
    within("gone", 30, || {
        world.entry("payments-10.0.7.1").is_none() && world.entry("payments-10.0.7.2").is_none()
    });
}

pub(super) fn killed(world: &mut World) {
    let checked = json!({"proxy.istio.io/health-checks-enabled": "true"});
    world.apply(
        "WorkloadEntry",
        "kept",
        &checked,
        &json!({"address": "10.0.8.3", "labels": {"app": "payments"}}),
    );
    let a = world.a();
    let agents = [
        a.connect("payments", "", "10.0.8.1"),
        a.connect("payments", "", "10.0.8.2"),
        a.connect("", "kept", "10.0.8.3"),
    ];
    for agent in &agents {
        agent.report(true);
    }
    let all = set(&["10.0.8.1", "10.0.8.2", "10.0.8.3"]);
    // Two are left to handle its entries.
    let c = Replica::start(&world.cluster, "c", GRACE);
    within("served", 30, || world.b().endpoints() == all && c.endpoints() == all);
    world.a.take().expect("it runs").kill();
    let begin = Instant::now();
    // One comes back at the other replica; two do not.
    let back = world.b().connect("payments", "", "10.0.8.2");
    back.report(true);
    while begin.elapsed() < Duration::from_secs(18) {
        assert_eq!(world.b().endpoints(), all, "the lease is valid");
        sleep(Duration::from_millis(500));
    }
    within("who did not come back is gone", 60, || {
        [world.b(), &c].iter().all(|replica| replica.endpoints() == set(&["10.0.8.2"]))
    });
    within("its entry too", 10, || world.entry("payments-10.0.8.1").is_none());
    within("of a manual one nobody knows", 10, || {
        world.condition("kept").as_deref() == Some("Unknown Disconnected")
    });
    let before = world.entry("kept").expect("it is there");
    sleep(Duration::from_secs(5));
    assert_eq!(world.entry("kept"), Some(before), "once");
    world.a = Some(Replica::start(&world.cluster, "a", GRACE));
    within("it comes back and sees the same", 30, || {
        world.a().is_ready() && world.a().endpoints() == set(&["10.0.8.2"])
    });
    back.close();
    within("gone", 30, || world.entry("payments-10.0.8.2").is_none());
}

/// A rollout: its agents go elsewhere, and who does not is missed at once, not when a Lease runs out.
pub(super) fn ended(world: &mut World) {
    let agents = ["10.0.10.1", "10.0.10.2"].map(|ip| {
        let agent = world.a().connect("payments", "", ip);
        agent.report(true);
        agent
    });
    let both = set(&["10.0.10.1", "10.0.10.2"]);
    within("served", 10, || world.b().endpoints() == both);
    let begin = Instant::now();
    assert_eq!(world.a.take().expect("it runs").end(), Some(0));
    let back = world.b().connect("payments", "", "10.0.10.1");
    back.report(true);
    within("who did not come back is gone", 20, || world.b().endpoints() == set(&["10.0.10.1"]));
    assert!(begin.elapsed() >= GRACE, "not before the grace");
    assert!(agents.iter().all(|agent| agent.closed().is_some()));
    back.close();
    within("gone", 20, || world.b().endpoints().is_empty());
    world.a = Some(Replica::start(&world.cluster, "a", GRACE));
    within("the next one is ready", 30, || world.a().is_ready());
}
