//! Health reports on a stream of their own: without an Envoy, before it, and after it.

use xds::json::decode_struct;
use xds::type_url::{CLUSTER, HEALTH_INFORMATION as REPORT, LISTENER};

use super::super::*;
use super::support::{BOTH, EDS, Tested, configure, status, terminating};

fn sent_types(tested: &Tested) -> Vec<String> {
    tested.sent().into_iter().map(|request| request.type_url).collect()
}

/// Opens the stream of an agent without an Envoy.
fn alone(variant: Variant, serves_envoy: bool) -> Tested {
    let mut tested = Tested::reporting(variant, serves_envoy);
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    assert_eq!(sent_types(&tested), [EDS, REPORT]);
    tested
}

fn connect_times(tested: &mut Tested, is_rejected: bool, times: usize) -> Vec<Duration> {
    let closed = || Input::UpstreamClosed { is_rejected, reason: "refused".to_owned() };
    let pause = |tested: &mut Tested| {
        let before = tested.now;
        tested.step(closed());
        tested.tick_until(|effect| *effect == Effect::Connect);
        tested.now - before
    };
    (0..times).map(|_| pause(tested)).collect()
}

#[test]
fn an_agent_without_an_envoy_introduces_itself_and_reports() {
    for variant in BOTH {
        let tested = alone(variant, false);
        assert_eq!(tested.now, Duration::ZERO);
        let node = xds::Node::parse(tested.sent()[0].node.as_ref().unwrap(), decode_struct).unwrap();
        assert_eq!((&*node.id, &*node.program, &*node.version), ("agent", "agent", "1"));
        assert!(tested.sent()[0].subscribe.is_empty());
        let view = tested.proxy.view(tested.now);
        assert_eq!((view.envoy, view.connected.is_some()), (None, true));
    }
}

#[test]
fn resources_on_a_stream_without_an_envoy_confirm_nothing() {
    for variant in BOTH {
        let mut tested = alone(variant, true);
        tested.server(EDS, &[], "1", "n1");
        assert!(tested.effects.is_empty());
        tested.wait(Duration::from_secs(120));
        assert_eq!(tested.proxy.view(tested.now).age, None);
        assert_eq!(tested.proxy.view(tested.now).not_subscribed, 0);
    }
}

/// Each pause is the middle of its range: 100 ms to 500 ms, 1 s, and so on up to 30 s.
#[test]
fn pauses_between_attempts_grow_up_to_half_a_minute() {
    let mut tested = Tested::reporting(Variant::Sotw, false);
    tested.tick_until(|effect| *effect == Effect::Connect);
    let pauses = connect_times(&mut tested, false, 9);
    let expected = [300, 550, 1050, 2050, 4050, 8050, 15050, 15050, 15050].map(Duration::from_millis);
    assert_eq!(pauses, expected);
    // Those of a rejected client are the longest at once, and an Envoy does not wait for them.
    let mut tested = Tested::reporting(Variant::Sotw, true);
    tested.tick_until(|effect| *effect == Effect::Connect);
    assert_eq!(connect_times(&mut tested, true, 1), [Duration::from_millis(15050)]);
    tested.step(Input::UpstreamClosed { is_rejected: true, reason: "rejected".to_owned() });
    tested.open();
}

#[test]
fn a_stream_of_five_seconds_resets_the_pauses() {
    for (lasts, expected) in [(4, 1050), (5, 300)] {
        let mut tested = Tested::reporting(Variant::Sotw, false);
        tested.tick_until(|effect| *effect == Effect::Connect);
        connect_times(&mut tested, false, 2);
        tested.open_upstream();
        tested.now += Duration::from_secs(lasts);
        assert_eq!(connect_times(&mut tested, false, 1), [Duration::from_millis(expected)]);
    }
}

/// The agent itself ends the stream, because of new certificates or an Envoy.
#[test]
fn a_stable_stream_that_the_agent_ends_resets_the_pauses() {
    for (input, expected) in [(Input::FilesChanged, 300), (Input::EnvoyOpened(Variant::Sotw), 275)] {
        let mut tested = Tested::reporting(Variant::Sotw, true);
        tested.tick_until(|effect| *effect == Effect::Connect);
        connect_times(&mut tested, false, 2);
        tested.open_upstream();
        tested.now += STABLE_AFTER;
        tested.step(input);
        tested.tick_until(|effect| *effect == Effect::Connect);
        assert_eq!(connect_times(&mut tested, false, 1), [Duration::from_millis(expected)]);
    }
}

/// The control plane has confirmed the configuration until the agent closes the stream.
#[test]
fn a_stream_that_is_closed_after_that_of_envoy_confirms_the_configuration() {
    let mut tested = configure(Tested::reporting(Variant::Sotw, true));
    tested.step(Input::EnvoyClosed);
    tested.tick_until(|effect| *effect == Effect::CloseUpstream);
    assert_eq!(tested.now, ENVOY_GRACE);
    assert_eq!(tested.proxy.view(tested.now).age, Some(Duration::ZERO));
}

/// A server that restarts has not refused reports, and without them there is no stream to protect.
#[test]
fn lost_streams_refuse_no_reports() {
    let mut tested = alone(Variant::Sotw, false);
    for _ in 0..5 {
        connect_times(&mut tested, false, 1);
        tested.open_upstream();
        assert_eq!(sent_types(&tested), [EDS, REPORT]);
        let view = tested.proxy.view(tested.now);
        assert!(!view.is_health_refused);
    }
}

#[test]
fn an_envoy_that_comes_replaces_the_stream() {
    for variant in BOTH {
        for other in BOTH {
            let mut tested = alone(other, true);
            assert_eq!(tested.now, ENVOY_GRACE, "an Envoy was awaited");
            tested.variant = variant;
            tested.step(Input::EnvoyOpened(variant));
            let closed = Effect::Health(HealthEvent::Closed);
            assert_eq!(tested.effects, [Effect::CloseUpstream, closed, Effect::Connect]);
            tested.open_upstream();
            assert!(tested.sent().is_empty(), "Envoy speaks first");
            tested.envoy(LISTENER, &[], "", "");
            assert_eq!(sent_types(&tested), [LISTENER, REPORT]);
        }
    }
}

#[test]
fn an_envoy_at_the_start_gets_the_first_stream() {
    let mut tested = Tested::reporting(Variant::Sotw, true);
    tested.wait(Duration::from_secs(4));
    assert!(tested.effects.is_empty());
    tested.open();
    tested.wait(Duration::from_secs(4));
    assert!(tested.effects.is_empty());
    tested.envoy(LISTENER, &[], "", "");
    assert_eq!(sent_types(&tested), [LISTENER, REPORT]);
}

#[test]
fn a_silent_envoy_does_not_prevent_reports() {
    for variant in BOTH {
        let mut tested = Tested::reporting(variant, true);
        tested.open();
        tested.wait(ENVOY_GRACE);
        assert_eq!(sent_types(&tested), [EDS, REPORT]);
        // Its first request needs a stream on which its node is the first.
        tested.envoy(CLUSTER, &[], "", "");
        assert!(tested.effects.contains(&Effect::CloseUpstream) && tested.sent().is_empty());
        tested.tick_until(|effect| *effect == Effect::Connect);
        tested.open_upstream();
        assert_eq!(sent_types(&tested), [CLUSTER]);
        assert!(tested.sent()[0].node.as_ref().unwrap().starts_with(b"\x0a\x01n"));
    }
}

#[test]
fn reports_continue_after_envoy_has_gone() {
    for variant in BOTH {
        let mut tested = configure(Tested::reporting(variant, true));
        tested.envoy(LISTENER, &[], "", "");
        tested.step(Input::EnvoyClosed);
        tested.step(Input::Health(status(2)));
        assert_eq!(sent_types(&tested), [REPORT], "on the stream that Envoy had");
        tested.tick_until(|effect| *effect == Effect::CloseUpstream);
        assert_eq!(tested.now, ENVOY_GRACE);
        tested.tick_until(|effect| *effect == Effect::Connect);
        assert_eq!(tested.now, ENVOY_GRACE);
        tested.open_upstream();
        assert_eq!(sent_types(&tested), [EDS, REPORT]);
        // An attempt for an Envoy that has gone is not used.
        tested.step(Input::EnvoyOpened(variant));
        tested.step(Input::EnvoyClosed);
        assert_eq!(tested.effects, [Effect::CloseUpstream]);
        tested.tick_until(|effect| *effect == Effect::Connect);
        assert_eq!(tested.now, 2 * ENVOY_GRACE);
    }
}

/// Health alone opens no stream while an Envoy may come back.
#[test]
fn an_envoy_that_restarts_soon_gets_the_next_stream() {
    let mut tested = configure(Tested::reporting(Variant::Delta, true));
    tested.step(Input::EnvoyClosed);
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() });
    tested.wait(Duration::from_secs(4));
    assert!(!tested.effects.contains(&Effect::Connect));
    tested.open();
    tested.envoy(LISTENER, &[], "", "");
    assert_eq!(sent_types(&tested), [LISTENER, REPORT]);
}

#[test]
fn changed_files_reopen_the_stream_once() {
    let mut tested = alone(Variant::Sotw, false);
    tested.step(Input::FilesChanged);
    tested.wait(Duration::from_secs(5));
    tested.step(Input::FilesChanged);
    tested.tick_until(|effect| *effect == Effect::CloseUpstream);
    assert_eq!(tested.now, REOPEN_WITHIN.mul_f64(0.5));
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    assert_eq!(sent_types(&tested), [EDS, REPORT]);
    tested.wait(REOPEN_WITHIN);
    assert!(!tested.effects.contains(&Effect::CloseUpstream));
}

/// A later attempt could not deliver the report in time. Each row has the state at the end: a pause,
/// the grace period of an Envoy, an attempt for an Envoy that leaves.
#[test]
fn the_final_report_does_not_wait() {
    for row in 0..3 {
        let mut tested = Tested::reporting(Variant::Sotw, row > 0);
        match row {
            0 => {
                tested.tick_until(|effect| *effect == Effect::Connect);
                tested.step(Input::UpstreamClosed { is_rejected: true, reason: "rejected".to_owned() });
                tested.step(Input::Terminating);
                assert_eq!(tested.effects, [Effect::Connect]);
            }
            1 => {
                tested.step(Input::Terminating);
                assert_eq!(tested.effects, [Effect::Connect]);
            }
            _ => {
                tested.step(Input::EnvoyOpened(Variant::Sotw));
                tested.step(Input::Terminating);
                tested.step(Input::EnvoyClosed);
                assert!(tested.effects.is_empty());
            }
        }
        tested.step(Input::Health(terminating(2)));
        tested.open_upstream();
        assert_eq!(sent_types(&tested), [EDS, REPORT]);
        // istiod acknowledges nothing.
        tested.tick_until(|effect| *effect == Effect::HalfCloseUpstream);
        tested.step(Input::UpstreamClosed { is_rejected: false, reason: "ended".to_owned() });
        assert!(tested.effects.contains(&Effect::Health(HealthEvent::Done)));
        assert_eq!(tested.proxy.next_due(), None);
    }
}

#[test]
fn the_final_report_times_out_without_a_server() {
    let mut tested = Tested::reporting(Variant::Sotw, false);
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.step(Input::Terminating);
    tested.wait(Duration::from_secs(2));
    assert_eq!(tested.effects, [Effect::CloseUpstream, Effect::Health(HealthEvent::Done)]);
    assert_eq!(tested.proxy.next_due(), None);
}
