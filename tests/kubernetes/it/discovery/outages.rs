//! Tests of an unavailable API server and of an unavailable replica.

use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::Instant;

use super::replica::Replica;
use super::{DISCONNECT_GRACE, Fixture, set};
use crate::wait_until;

pub(super) fn frozen(fixture: &mut Fixture) {
    let agents = ["10.0.6.1", "10.0.6.2", "10.0.6.3"].map(|ip| {
        let agent = fixture.a().connect("payments", "", ip);
        let generation = agent.report(true);
        wait_until("acknowledged", || agent.acknowledged() == Some(generation));
        agent
    });
    let all = set(&["10.0.6.1", "10.0.6.2", "10.0.6.3"]);
    wait_until("served", || fixture.b().endpoints() == all);
    fixture.cluster.signal_api_server(Signal::SIGSTOP);
    let begin = Instant::now();
    let [flips, leaves, stays] = agents;
    let generation = flips.report(false);
    wait_until("endpoint pushed without the API server", || {
        fixture.a().endpoints() == set(&["10.0.6.2", "10.0.6.3"])
    });
    // The grace period of this agent ends while the API server is frozen.
    sleep(Duration::from_secs(10));
    leaves.close();
    let (_, body) = fixture.a().http_get("/healthz/ready");
    assert!(body.contains("store: API server unreachable"), "{body}");
    assert_eq!(
        flips.acknowledged(),
        Some(generation - 1),
        "a report must not be acknowledged before it is stored"
    );
    // Its agents connect to the other replica before that takes their entries over. The other one has
    // lost the API server too, and ends its streams at about the same time.
    wait_until("replicas are unready and have ended the streams of their agents", || {
        let is_unready = |replica: &Replica| replica.http_get("/healthz/ready").0 == 503;
        let is_over = flips.closed().is_some() && stays.closed().is_some();
        is_over && is_unready(fixture.a()) && is_unready(fixture.b())
    });
    let flips = fixture.b().connect("payments", "", "10.0.6.1");
    let stays = fixture.b().connect("payments", "", "10.0.6.3");
    let generation = flips.report(false);
    stays.report(true);
    wait_until("endpoint removed by a report", || fixture.b().endpoints() == set(&["10.0.6.2", "10.0.6.3"]));
    // This is longer than the Leases are valid.
    while begin.elapsed() < Duration::from_secs(40) {
        assert_eq!(flips.acknowledged(), None, "a report must not be acknowledged before it is stored");
        assert_eq!(
            fixture.a().endpoints(),
            set(&["10.0.6.2", "10.0.6.3"]),
            "endpoints must only be removed by reports"
        );
        assert_eq!(
            fixture.b().endpoints(),
            set(&["10.0.6.2", "10.0.6.3"]),
            "an unreachable API server must not remove endpoints"
        );
        sleep(Duration::from_millis(500));
    }
    fixture.cluster.signal_api_server(Signal::SIGCONT);
    wait_until("acknowledged", || flips.acknowledged() == Some(generation));
    wait_until("replicas are ready", || fixture.a().is_ready() && fixture.b().is_ready());
    wait_until("entry of the disconnected agent deleted", || {
        let replicas = [fixture.a(), fixture.b()];
        fixture.entry("payments-10.0.6.2").is_none()
            && replicas.iter().all(|replica| replica.endpoints() == set(&["10.0.6.3"]))
    });
    assert_eq!((flips.closed(), stays.closed()), (None, None));
    flips.close();
    stays.close();
    wait_until("gone", || fixture.b().endpoints().is_empty());
}

pub(super) fn restarted(fixture: &mut Fixture) {
    let agent = fixture.a().connect("payments", "", "10.0.7.1");
    agent.report(true);
    wait_until("served", || fixture.b().endpoints() == set(&["10.0.7.1"]));
    fixture.cluster.stop_api_server();
    let generation = agent.report(false);
    let new = fixture.b().connect("payments", "", "10.0.7.2");
    wait_until("endpoint pushed without the API server", || fixture.a().endpoints().is_empty());
    sleep(Duration::from_secs(5));
    assert_eq!(fixture.b().endpoints(), set(&["10.0.7.1"]), "the replica must serve its cached endpoints");
    assert_ne!(agent.acknowledged(), Some(generation));
    fixture.cluster.start_api_server();
    wait_until("replicas are ready", || fixture.a().is_ready() && fixture.b().is_ready());
    // A replica whose Lease was half over has ended their streams.
    let (agent, generation) = match agent.closed() {
        None => (agent, generation),
        Some(_) => {
            let again = fixture.a().connect("payments", "", "10.0.7.1");
            let generation = again.report(false);
            (again, generation)
        }
    };
    let new = match new.closed() {
        None => new,
        Some(_) => fixture.b().connect("payments", "", "10.0.7.2"),
    };
    wait_until("acknowledged", || agent.acknowledged() == Some(generation));
    wait_until("removed on the other replica", || fixture.b().endpoints().is_empty());
    new.report(true);
    wait_until("agent that connected meanwhile registered", || {
        fixture.a().endpoints() == set(&["10.0.7.2"]) && fixture.entry("payments-10.0.7.2").is_some()
    });
    agent.close();
    new.close();
    wait_until("gone", || {
        fixture.entry("payments-10.0.7.1").is_none() && fixture.entry("payments-10.0.7.2").is_none()
    });
}

/// The number of trials of [`lost_by_one_replica`], which is 1 by default.
const TRIALS: &str = "APP_HEALTH_TEST_TRIALS";

/// One replica loses the API server, and its agents connect to the other one. No endpoint is removed.
#[expect(clippy::print_stdout, reason = "the progress of a test that takes minutes")]
pub(super) fn lost_by_one_replica(fixture: &mut Fixture) {
    let trials = std::env::var_os(TRIALS).map_or(1, |trials| {
        let trials = trials.to_str().and_then(|trials| trials.parse().ok());
        trials.unwrap_or_else(|| panic!("{TRIALS}: must be a number"))
    });
    for trial in 1..=trials {
        println!("  trial {trial} of {trials}");
        lose_api_server(fixture);
    }
}

fn lose_api_server(fixture: &Fixture) {
    let (ips, all) = (["10.0.9.1", "10.0.9.2", "10.0.9.3"], set(&["10.0.9.1", "10.0.9.2", "10.0.9.3"]));
    let (a, b) = (fixture.a(), fixture.b());
    let report = |replica: &Replica, ip: &str| {
        let agent = replica.connect("payments", "", ip);
        let generation = agent.report(true);
        wait_until("acknowledged", || agent.acknowledged() == Some(generation));
        agent
    };
    let agents = ips.map(|ip| report(a, ip));
    wait_until("served by both replicas", || a.endpoints() == all && b.endpoints() == all);
    let removals = [a.removals(), b.removals()];
    a.set_api_server_lost(true);
    let begin = Instant::now();
    wait_until("the replica is unready and has ended the streams of its agents", || {
        agents.iter().all(|agent| agent.closed().is_some()) && !a.is_ready()
    });
    assert!(b.is_ready(), "the other replica still has the API server");
    let agents = ips.map(|ip| report(b, ip));
    // This is longer than the Lease is valid.
    while begin.elapsed() < Duration::from_secs(45) {
        sleep(Duration::from_millis(500));
        assert_eq!(b.endpoints(), all, "the agents report to this replica");
    }
    a.set_api_server_lost(false);
    wait_until("the replica is ready and serves all endpoints", || a.is_ready() && a.endpoints() == all);
    assert_eq!([a.removals(), b.removals()], removals, "endpoints were removed for a moment");
    agents.into_iter().for_each(super::agent::Agent::close);
    wait_until("gone", || a.endpoints().is_empty() && b.endpoints().is_empty());
}

pub(super) fn killed(fixture: &mut Fixture) {
    let checked = json!({"proxy.istio.io/health-checks-enabled": "true"});
    fixture.apply(
        "WorkloadEntry",
        "kept",
        &checked,
        &json!({"address": "10.0.8.3", "labels": {"app": "payments"}}),
    );
    let a = fixture.a();
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
    let c = Replica::start(&fixture.cluster, "c", DISCONNECT_GRACE);
    wait_until("served", || fixture.b().endpoints() == all && c.endpoints() == all);
    fixture.a.take().expect("the replica runs").kill();
    let begin = Instant::now();
    // One agent reconnects to the other replica; two do not.
    let back = fixture.b().connect("payments", "", "10.0.8.2");
    back.report(true);
    while begin.elapsed() < Duration::from_secs(18) {
        assert_eq!(fixture.b().endpoints(), all, "endpoints must stay while the Lease is valid");
        sleep(Duration::from_millis(500));
    }
    // After the Lease has expired, its agents have a heartbeat and the grace period.
    wait_until("endpoints of disconnected agents removed", || {
        [fixture.b(), &c].iter().all(|replica| replica.endpoints() == set(&["10.0.8.2"]))
    });
    wait_until("auto-registered entry deleted", || fixture.entry("payments-10.0.8.1").is_none());
    wait_until("condition of the manual entry is Unknown", || {
        fixture.condition("kept").as_deref() == Some("Unknown Disconnected")
    });
    let before = fixture.entry("kept").expect("the entry exists");
    sleep(Duration::from_secs(5));
    assert_eq!(fixture.entry("kept"), Some(before), "the condition must be written only once");
    fixture.a = Some(Replica::start(&fixture.cluster, "a", DISCONNECT_GRACE));
    wait_until("restarted replica is ready and serves the same endpoints", || {
        fixture.a().is_ready() && fixture.a().endpoints() == set(&["10.0.8.2"])
    });
    back.close();
    wait_until("gone", || fixture.entry("payments-10.0.8.2").is_none());
}

/// A replica terminates as in a rollout. Its agents reconnect to another replica; for those that do
/// not, the grace period starts at once and not when the Lease expires.
pub(super) fn terminated(fixture: &mut Fixture) {
    let agents = ["10.0.10.1", "10.0.10.2"].map(|ip| {
        let agent = fixture.a().connect("payments", "", ip);
        agent.report(true);
        agent
    });
    let both = set(&["10.0.10.1", "10.0.10.2"]);
    wait_until("served", || fixture.b().endpoints() == both);
    let begin = Instant::now();
    assert_eq!(fixture.a.take().expect("the replica runs").end(), Some(0));
    let back = fixture.b().connect("payments", "", "10.0.10.1");
    back.report(true);
    wait_until("endpoints of disconnected agents removed", || fixture.b().endpoints() == set(&["10.0.10.1"]));
    assert!(
        begin.elapsed() >= DISCONNECT_GRACE,
        "endpoints must not be removed before the end of the grace period"
    );
    assert!(agents.iter().all(|agent| agent.closed().is_some()));
    back.close();
    wait_until("gone", || fixture.b().endpoints().is_empty());
    fixture.a = Some(Replica::start(&fixture.cluster, "a", DISCONNECT_GRACE));
    wait_until("restarted replica is ready", || fixture.a().is_ready());
}
