//! Tests of an unavailable API server and of an unavailable replica.

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
    within("endpoint pushed without the API server", 10, || {
        world.a().endpoints() == set(&["10.0.6.2", "10.0.6.3"])
    });
    // The grace period of this agent ends while the API server is frozen.
    sleep(Duration::from_secs(10));
    leaves.close();
    let (status, body) = world.a().page("/healthz/ready");
    assert!(status == 200 && body.contains("store: API server unreachable"), "{status} {body}");
    while begin.elapsed() < Duration::from_secs(60) {
        assert_eq!(
            flips.acknowledged(),
            Some(generation - 1),
            "a report must not be acknowledged before it is stored"
        );
        assert_eq!(
            world.a().endpoints(),
            set(&["10.0.6.2", "10.0.6.3"]),
            "endpoints must only be removed by reports"
        );
        assert_eq!(world.b().endpoints(), all, "an unreachable API server must not remove endpoints");
        sleep(Duration::from_millis(500));
    }
    world.cluster.signal_api_server(Signal::SIGCONT);
    within("acknowledged", 30, || flips.acknowledged() == Some(generation));
    within("removed on the other replica", 30, || !world.b().endpoints().contains("10.0.6.1"));
    within("entry of the disconnected agent deleted", 40, || {
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
    within("endpoint pushed without the API server", 10, || world.a().endpoints().is_empty());
    sleep(Duration::from_secs(5));
    assert_eq!(world.b().endpoints(), set(&["10.0.7.1"]), "the replica must serve its cached endpoints");
    assert_ne!(agent.acknowledged(), Some(generation));
    world.cluster.start_api_server();
    within("acknowledged", 30, || agent.acknowledged() == Some(generation));
    within("removed on the other replica", 30, || world.b().endpoints().is_empty());
    new.report(true);
    within("agent that connected meanwhile registered", 30, || {
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
    // Two replicas remain that can take over its entries.
    let c = Replica::start(&world.cluster, "c", GRACE);
    within("served", 30, || world.b().endpoints() == all && c.endpoints() == all);
    world.a.take().expect("the replica runs").kill();
    let begin = Instant::now();
    // One agent reconnects to the other replica; two do not.
    let back = world.b().connect("payments", "", "10.0.8.2");
    back.report(true);
    while begin.elapsed() < Duration::from_secs(18) {
        assert_eq!(world.b().endpoints(), all, "endpoints must stay while the Lease is valid");
        sleep(Duration::from_millis(500));
    }
    within("endpoints of disconnected agents removed", 60, || {
        [world.b(), &c].iter().all(|replica| replica.endpoints() == set(&["10.0.8.2"]))
    });
    within("auto-registered entry deleted", 10, || world.entry("payments-10.0.8.1").is_none());
    within("condition of the manual entry is Unknown", 10, || {
        world.condition("kept").as_deref() == Some("Unknown Disconnected")
    });
    let before = world.entry("kept").expect("the entry exists");
    sleep(Duration::from_secs(5));
    assert_eq!(world.entry("kept"), Some(before), "the condition must be written only once");
    world.a = Some(Replica::start(&world.cluster, "a", GRACE));
    within("restarted replica is ready and serves the same endpoints", 30, || {
        world.a().is_ready() && world.a().endpoints() == set(&["10.0.8.2"])
    });
    back.close();
    within("gone", 30, || world.entry("payments-10.0.8.2").is_none());
}

/// A replica terminates as in a rollout. Its agents reconnect to another replica; for those that do
/// not, the grace period starts at once and not when the Lease expires.
pub(super) fn ended(world: &mut World) {
    let agents = ["10.0.10.1", "10.0.10.2"].map(|ip| {
        let agent = world.a().connect("payments", "", ip);
        agent.report(true);
        agent
    });
    let both = set(&["10.0.10.1", "10.0.10.2"]);
    within("served", 10, || world.b().endpoints() == both);
    let begin = Instant::now();
    assert_eq!(world.a.take().expect("the replica runs").end(), Some(0));
    let back = world.b().connect("payments", "", "10.0.10.1");
    back.report(true);
    within("endpoints of disconnected agents removed", 20, || world.b().endpoints() == set(&["10.0.10.1"]));
    assert!(begin.elapsed() >= GRACE, "endpoints must not be removed before the end of the grace period");
    assert!(agents.iter().all(|agent| agent.closed().is_some()));
    back.close();
    within("gone", 20, || world.b().endpoints().is_empty());
    world.a = Some(Replica::start(&world.cluster, "a", GRACE));
    within("restarted replica is ready", 30, || world.a().is_ready());
}
