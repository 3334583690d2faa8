use proptest::prelude::*;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn settings() -> Settings {
    Settings { minimum: seconds(5), deadline: seconds(25), scope: DrainScope::Inbound, keeps_ready: false }
}

#[test]
fn a_drain_step_by_step() {
    let mut drain = Drain::new(settings());
    assert_eq!(drain.next(seconds(100)), Step::Rest);
    drain.leave(seconds(100));
    assert_eq!(drain.next(seconds(100)), Step::Tell);
    drain.told(false);
    assert_eq!(drain.next(seconds(101)), Step::Tell, "sent again");
    drain.told(true);
    assert_eq!(drain.next(seconds(101)), Step::Wait(seconds(105)), "the minimum");
    assert_eq!(drain.next(seconds(105)), Step::Count);
    drain.counted(Some(3), seconds(105));
    assert_eq!(drain.next(seconds(105)), Step::Wait(seconds(105) + COUNT));
    assert_eq!(drain.next(seconds(106)), Step::Count);
    drain.counted(Some(0), seconds(106));
    assert_eq!(drain.next(seconds(106)), Step::End);
}

#[test]
fn an_admin_port_that_is_deaf_ends_nothing_early() {
    let mut drain = Drain::new(settings());
    drain.leave(seconds(0));
    for second in 0..3 {
        assert_eq!(drain.next(seconds(second)), Step::Tell);
        drain.told(false);
    }
    assert_eq!(drain.next(seconds(3)), Step::Wait(seconds(5)), "no more attempts, and the drain continues");
    assert_eq!(drain.next(seconds(5)), Step::Count);
    drain.counted(None, seconds(6));
    assert_eq!(drain.next(seconds(6)), Step::End, "only the minimum applies");
}

#[test]
fn the_deadline_holds_whatever_is_open() {
    let mut drain = Drain::new(settings());
    drain.leave(seconds(0));
    drain.told(true);
    drain.counted(Some(1), seconds(24) + COUNT);
    assert_eq!(drain.next(seconds(24) + COUNT), Step::Wait(seconds(25)));
    assert_eq!(drain.next(seconds(25)), Step::End);
}

#[test]
fn asked_to_drain_and_then_to_end() {
    let mut drain = Drain::new(settings());
    drain.begin(seconds(0));
    assert_eq!(drain.next(seconds(0)), Step::Tell);
    drain.told(true);
    drain.begin(seconds(3));
    assert_eq!(drain.next(seconds(60)), Step::Rest, "the agent keeps running, and no second request is sent");
    assert!(!drain.is_leaving());
    drain.leave(seconds(2));
    assert_eq!(drain.next(seconds(2)), Step::Count, "without the minimum");
    drain.counted(Some(1), seconds(2));
    drain.leave(seconds(3));
    assert_eq!(drain.next(seconds(25)), Step::End, "counted from the start of the drain");
}

#[test]
fn what_envoy_is_told() {
    let all = Settings { scope: DrainScope::All, ..settings() };
    assert_eq!(settings().path(), "/drain_listeners?graceful&skip_exit&inboundonly");
    assert_eq!(all.path(), "/drain_listeners?graceful&skip_exit");
}

proptest! {
    /// Whatever Envoy answers, and however slowly, a drain ends neither before its minimum nor
    /// after its deadline.
    #[test]
    fn a_drain_is_over_in_time(answers in proptest::collection::vec((any::<bool>(), proptest::option::of(0..3u64), 0..1500u64), 200)) {
        let mut drain = Drain::new(settings());
        let mut now = seconds(50);
        drain.leave(now);
        for (understood, connections, millis) in answers {
            match drain.next(now) {
                Step::Rest => prop_assert!(false, "the drain stalled"),
                Step::Tell => { now += Duration::from_millis(millis); drain.told(understood); }
                Step::Count => { now += Duration::from_millis(millis); drain.counted(connections, now); }
                Step::Wait(until) => { prop_assert!(until > now && until <= seconds(75)); now = until; }
                Step::End => { prop_assert!(now >= seconds(55) && now <= seconds(77)); return Ok(()); }
            }
        }
        prop_assert!(false, "the drain did not end");
    }
}
