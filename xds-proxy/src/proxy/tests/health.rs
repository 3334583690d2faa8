//! Health reports on the stream of Envoy, and control planes that end a stream because of them.

use super::super::*;
use super::support::{BOTH, HOUR, Tested, configured, request};
use crate::wire::{CLUSTER, LISTENER};

const REPORT: &str = "type.googleapis.com/istio.v1.HealthInformation";

#[test]
fn health_follows_the_listener_request_and_is_hidden_from_envoy() {
    for variant in BOTH {
        let mut tested = Tested::new(variant);
        tested.step(Input::HealthAttached);
        tested.open();
        tested.envoy(CLUSTER, &[], "", "");
        assert!(!tested.effects.iter().any(|effect| matches!(effect, Effect::Health(_))));
        // A probe that arrives earlier is kept.
        tested.server("type.googleapis.com/app_health.v1.Probe", &[], "p1", "n1");
        assert!(tested.effects.is_empty());
        tested.envoy(LISTENER, &[], "", "");
        let health = |effect: &&Effect| matches!(effect, Effect::Health(_));
        let events: Vec<_> = tested.effects.iter().filter(health).collect();
        assert!(matches!(
            events[..],
            [Effect::Health(HealthEvent::Opened), Effect::Health(HealthEvent::Response(_))]
        ));
        // The request for listeners was sent before.
        assert!(matches!(tested.effects[0], Effect::SendUpstream(_)));
        let sent = request(variant, REPORT, &[], "", "").encode(variant);
        assert_eq!(tested.step(Input::HealthRequest(sent.clone())), [Effect::SendUpstream(sent)]);
        tested.server(REPORT, &[], "epoch/1", "");
        assert!(matches!(tested.effects[..], [Effect::Health(HealthEvent::Response(_))]));
        // After a reconnect the reporter is informed again.
        tested.lose_upstream();
        tested.step(Input::HealthAttached);
        tested.open_upstream();
        assert!(tested.effects.contains(&Effect::Health(HealthEvent::Opened)));
    }
}

/// The final report waits for its acknowledgement, and the agent decides how long.
#[test]
fn a_terminating_agent_keeps_the_stream_for_the_final_report() {
    for variant in BOTH {
        for ends_first in [false, true] {
            let mut tested = configured(variant);
            tested.envoy(LISTENER, &[], "", "");
            tested.step(Input::HealthAttached);
            assert_eq!(tested.effects, [Effect::Health(HealthEvent::Opened)]);
            // New certificates do not matter any more either.
            tested.step(Input::FilesChanged);
            if ends_first {
                tested.step(Input::EnvoyClosed);
                tested.step(Input::Terminating);
            } else {
                tested.step(Input::Terminating);
                tested.step(Input::EnvoyClosed);
            }
            tested.now += HOUR;
            tested.step(Input::Tick);
            assert!(!tested.effects.contains(&Effect::CloseUpstream), "{variant:?}, {ends_first}");
            let last = request(variant, REPORT, &[], "", "").encode(variant);
            assert_eq!(tested.step(Input::HealthRequest(last.clone())), [Effect::SendUpstream(last)]);
            tested.server(REPORT, &[], "epoch/2", "");
            assert!(matches!(tested.effects[..], [Effect::Health(HealthEvent::Response(_))]));
        }
    }
}

#[test]
fn a_reporter_that_attaches_again_gets_another_stream() {
    let mut tested = configured(Variant::Sotw);
    tested.envoy(LISTENER, &[], "", "");
    tested.step(Input::HealthAttached);
    tested.step(Input::HealthAttached);
    // The reporter has dropped its part of the old stream and need not be informed.
    assert_eq!(tested.effects, [Effect::CloseUpstream]);
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    assert!(tested.effects.contains(&Effect::Health(HealthEvent::Opened)));
}

/// Sends a report as soon as one may be sent.
fn report(tested: &mut Tested) {
    tested.step(Input::HealthAttached);
    tested.tick_until(|effect| *effect == Effect::Health(HealthEvent::Opened));
    let report = request(tested.variant, REPORT, &[], "", "").encode(tested.variant);
    assert_eq!(tested.step(Input::HealthRequest(report.clone())), [Effect::SendUpstream(report)]);
}

/// The control plane ends the stream, and the next one is opened. Returns what was logged.
fn end_stream(tested: &mut Tested) -> Option<Duration> {
    tested.step(Input::UpstreamClosed { is_rejected: true, reason: "InvalidArgument".to_owned() });
    let pause = tested.effects.iter().find_map(|effect| match effect {
        Effect::Event(Event::HealthRefused { pause, .. }) => Some(*pause),
        _ => None,
    });
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    pause
}

fn is_refused(tested: &Tested) -> bool {
    tested.proxy.view(tested.now).is_health_refused
}

fn listening(variant: Variant) -> Tested {
    let mut tested = configured(variant);
    tested.envoy(LISTENER, &[], "", "");
    tested
}

#[test]
fn a_control_plane_that_ends_the_stream_after_reports_gets_none() {
    for variant in BOTH {
        let mut tested = listening(variant);
        report(&mut tested);
        let ended = tested.now;
        assert_eq!(end_stream(&mut tested), None, "one stream proves nothing");
        assert!(tested.now - ended <= FIRST_DELAY, "Envoy itself was not rejected");
        // Envoy gets its configuration before the next report.
        let opened = tested.now;
        report(&mut tested);
        assert!(tested.now - opened >= Duration::from_secs(10));
        assert_eq!(end_stream(&mut tested), Some(Duration::from_secs(60)));
        assert!(is_refused(&tested));
        tested.step(Input::HealthAttached);
        for _ in 0..10 {
            tested.now += HOUR;
            tested.step(Input::Tick);
            assert!(!tested.effects.iter().any(|effect| matches!(effect, Effect::Health(_))), "{variant:?}");
        }
        // A new stream finds out whether the control plane was upgraded, or waits longer.
        end_stream(&mut tested);
        assert!(!is_refused(&tested));
        report(&mut tested);
        assert_eq!(end_stream(&mut tested), Some(Duration::from_secs(120)));
        tested.now += Duration::from_secs(60);
        end_stream(&mut tested);
        assert!(is_refused(&tested), "the pause has doubled");
        tested.now += HOUR;
        end_stream(&mut tested);
        report(&mut tested);
        tested.server(REPORT, &[], "epoch/1", "");
        end_stream(&mut tested);
        assert!(!is_refused(&tested));
        let opened = tested.now;
        report(&mut tested);
        assert_eq!(tested.now, opened, "a control plane that answers gets reports at once");
    }
}

/// istiod answers no report.
#[test]
fn streams_that_end_for_other_reasons_refuse_nothing() {
    let mut tested = listening(Variant::Sotw);
    for round in 0..6 {
        report(&mut tested);
        tested.now += match round % 2 {
            // The stream outlives the report.
            0 => Duration::from_secs(6),
            _ => Duration::ZERO,
        };
        assert_eq!(end_stream(&mut tested), None, "round {round}");
    }
    for _ in 0..4 {
        // A stream without a report.
        assert_eq!(end_stream(&mut tested), None);
    }
    // A server that ends the stream after a later report has accepted the first one.
    for _ in 0..4 {
        report(&mut tested);
        tested.now += Duration::from_secs(30);
        tested.step(Input::HealthRequest(request(Variant::Sotw, REPORT, &[], "", "").encode(Variant::Sotw)));
        assert_eq!(end_stream(&mut tested), None);
    }
}

#[test]
fn another_server_gets_reports() {
    let mut tested = listening(Variant::Sotw);
    for _ in 0..2 {
        report(&mut tested);
        end_stream(&mut tested);
    }
    assert!(is_refused(&tested));
    tested.lose_upstream();
    tested.step(Input::UpstreamOpened { node: Bytes::new(), server: "other:15012".to_owned() });
    assert!(!is_refused(&tested));
    report(&mut tested);
}
