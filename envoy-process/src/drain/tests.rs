use proptest::prelude::*;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settings() -> DrainSettings {
    DrainSettings {
        minimum: seconds(5),
        deadline: seconds(25),
        scope: DrainScope::Inbound,
        keeps_ready: false,
    }
}

#[test]
fn a_drain_step_by_step() {
    let mut drain = Drain::new(settings());
    assert_eq!(drain.next(seconds(100)), Step::Idle);
    drain.begin_shutdown(seconds(100));
    assert_eq!(drain.next(seconds(100)), Step::SendDrain);
    drain.on_drain_response(false);
    assert_eq!(drain.next(seconds(101)), Step::SendDrain, "sent again");
    drain.on_drain_response(true);
    assert_eq!(drain.next(seconds(101)), Step::WaitUntil(seconds(105)), "the minimum");
    assert_eq!(drain.next(seconds(105)), Step::CountConnections);
    drain.on_connection_count(Some(3), seconds(105));
    assert_eq!(drain.next(seconds(105)), Step::WaitUntil(seconds(105) + COUNT_INTERVAL));
    assert_eq!(drain.next(seconds(106)), Step::CountConnections);
    drain.on_connection_count(Some(0), seconds(106));
    assert_eq!(drain.next(seconds(106)), Step::End);
}

#[test]
fn a_drain_can_be_reversed_until_shutdown() {
    let mut drain = Drain::new(settings());
    assert_eq!(drain.cancel(), Some(false), "nothing to reverse");
    drain.begin(seconds(0));
    drain.on_drain_response(true);
    assert_eq!(drain.cancel(), Some(true));
    assert_eq!(drain.next(seconds(1)), Step::Idle);
    drain.begin(seconds(100));
    assert_eq!(drain.next(seconds(100)), Step::SendDrain, "the next drain is sent again");
    drain.begin_shutdown(seconds(101));
    assert_eq!(drain.cancel(), None);
    assert_eq!(drain.next(seconds(101)), Step::SendDrain);
}

#[test]
fn an_unresponsive_admin_interface_does_not_shorten_the_drain() {
    let mut drain = Drain::new(settings());
    drain.begin_shutdown(seconds(0));
    for second in 0..3 {
        assert_eq!(drain.next(seconds(second)), Step::SendDrain);
        drain.on_drain_response(false);
    }
    assert_eq!(
        drain.next(seconds(3)),
        Step::WaitUntil(seconds(5)),
        "no more attempts, and the drain continues"
    );
    assert_eq!(drain.next(seconds(5)), Step::CountConnections);
    drain.on_connection_count(None, seconds(6));
    assert_eq!(drain.next(seconds(6)), Step::End, "only the minimum applies");
}

#[test]
fn the_deadline_holds_despite_open_connections() {
    let mut drain = Drain::new(settings());
    drain.begin_shutdown(seconds(0));
    drain.on_drain_response(true);
    drain.on_connection_count(Some(1), seconds(24) + COUNT_INTERVAL);
    assert_eq!(drain.next(seconds(24) + COUNT_INTERVAL), Step::WaitUntil(seconds(25)));
    assert_eq!(drain.next(seconds(25)), Step::End);
}

#[test]
fn sigterm_after_a_drain_request() {
    let mut drain = Drain::new(settings());
    drain.begin(seconds(0));
    assert_eq!(drain.next(seconds(0)), Step::SendDrain);
    drain.on_drain_response(true);
    drain.begin(seconds(3));
    assert_eq!(drain.next(seconds(60)), Step::Idle, "the agent keeps running, and no second request is sent");
    assert!(!drain.is_shutting_down());
    drain.begin_shutdown(seconds(2));
    assert_eq!(drain.next(seconds(2)), Step::CountConnections, "without the minimum");
    drain.on_connection_count(Some(1), seconds(2));
    drain.begin_shutdown(seconds(3));
    assert_eq!(drain.next(seconds(25)), Step::End, "counted from the start of the drain");
}

proptest! {
    /// Whatever Envoy answers, and however slowly, a drain ends neither before its minimum nor
    /// after its deadline.
    #[test]
    fn a_drain_ends_before_its_deadline(answers in proptest::collection::vec((any::<bool>(), proptest::option::of(0..3u64), 0..1500u64), 200)) {
        let mut drain = Drain::new(settings());
        let mut now = seconds(50);
        drain.begin_shutdown(now);
        for (understood, connections, millis) in answers {
            match drain.next(now) {
                Step::Idle => prop_assert!(false, "the drain stalled"),
                Step::SendDrain => { now += Duration::from_millis(millis); drain.on_drain_response(understood); }
                Step::CountConnections => { now += Duration::from_millis(millis); drain.on_connection_count(connections, now); }
                Step::WaitUntil(until) => { prop_assert!(until > now && until <= seconds(75)); now = until; }
                Step::End => { prop_assert!(now >= seconds(55) && now <= seconds(77)); return Ok(()); }
            }
        }
        prop_assert!(false, "the drain did not end");
    }
}
