//! A test of an API server that answers a replica with 429 and 410, or whose watches are slow.

use std::thread::sleep;
use std::time::Duration;

use tokio::time::Instant;

use super::replica::Replica;
use super::{DISCONNECT_GRACE, Fixture, set};
use crate::faulty_api::{Fault, FaultyApi};
use crate::wait_until;

/// How long watches fail.
const EXPIRED: Duration = Duration::from_secs(10);
/// How late the events of a watch are.
const LATE: Duration = Duration::from_secs(2);
/// The most requests of a replica while its watches fail, at first and in each second: each of the three lists
/// again after a delay that grows from 50 ms to 5 s, and the Leases are read each 3 s.
const REQUESTS: (f64, f64) = (60.0, 3.0);

pub(super) fn overloaded(fixture: &mut Fixture) {
    let api = FaultyApi::start(&fixture.cluster, "discovery");
    let kubeconfig = api.kubeconfig(&fixture.cluster);
    let c = Replica::start_with(&fixture.cluster, "c", DISCONNECT_GRACE, Some(kubeconfig));
    wait_until("the replica is ready", || c.is_ready());
    let (own, other) =
        (c.connect("payments", "", "10.0.11.1"), fixture.b().connect("payments", "", "10.0.11.2"));
    own.report(true);
    other.report(true);
    let both = set(&["10.0.11.1", "10.0.11.2"]);
    wait_until("served by both replicas", || c.endpoints() == both && fixture.b().endpoints() == both);
    let removals = c.removals();

    api.set(Fault::TooManyRequests);
    let generation = own.report(false);
    wait_until("a report takes effect without the API server", || c.endpoints() == set(&["10.0.11.2"]));
    wait_until("the replica says why it is degraded", || {
        c.http_get("/healthz/ready").1.contains("store: API server unreachable")
    });
    assert_ne!(own.acknowledged(), Some(generation), "a report must not be acknowledged before it is stored");
    api.set(Fault::None);
    // A replica whose Lease was half over has ended its stream.
    let own = match own.closed() {
        None => own,
        Some(_) => c.connect("payments", "", "10.0.11.1"),
    };
    let generation = own.report(true);
    wait_until("a report is stored once the API server answers", || {
        own.acknowledged() == Some(generation) && fixture.b().endpoints() == both && c.endpoints() == both
    });

    api.set(Fault::ExpiredWatches);
    let (begin, before) = (Instant::now(), api.requests());
    other.report(false);
    wait_until("lists take the place of watches", || c.endpoints() == set(&["10.0.11.1"]));
    sleep(EXPIRED);
    let requests = (api.requests() - before) as f64;
    let most = REQUESTS.0 + REQUESTS.1 * begin.elapsed().as_secs_f64();
    assert!(requests <= most, "{requests} in {:?}", begin.elapsed());

    api.set(Fault::SlowWatches(LATE));
    other.report(true);
    let generation = own.report(false);
    wait_until("own reports do not wait for the watch", || own.acknowledged() == Some(generation));
    wait_until("late events take effect", || c.endpoints() == set(&["10.0.11.2"]));
    api.set(Fault::None);
    // 10.0.11.1 twice and 10.0.11.2 once.
    assert_eq!(c.removals() - removals, 3, "only reports remove endpoints");
    own.close();
    other.close();
    wait_until("gone", || c.endpoints().is_empty() && fixture.b().endpoints().is_empty());
    assert_eq!(c.end(), Some(0));
}
