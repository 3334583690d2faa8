//! Health reports on the stream of Envoy, and control planes that end a stream because of them.

use serde_json::json;
use xds::json::encode_struct;
use xds::type_url::{CLUSTER, HEALTH_INFORMATION as REPORT, LISTENER, PROBE};
use xds::{ResourceRef, ResponseHead};

use super::super::*;
use super::support::{BOTH, HOUR, Tested, agent, configure, status, terminating};

fn is_opened(effect: &Effect) -> bool {
    *effect == Effect::Health(HealthEvent::Opened)
}

fn is_listening(tested: &mut Tested) {
    tested.envoy(LISTENER, &[], "", "");
}

/// Encodes a hello message.
fn hello(tested: &mut Tested, session: u64) {
    let content = json!({ "session": session, "heartbeatSeconds": 60 });
    let any = xds::any("", &encode_struct(&content));
    let resource = ResourceRef { name: "probe", version: "1", any: &any };
    let head = ResponseHead { type_url: PROBE, version: "p1", nonce: "h1" };
    tested.step(Input::UpstreamResponse(head.encode(tested.variant, [resource], [])));
}

/// Types of the requests that the last step sends.
fn sent_types(tested: &Tested) -> Vec<String> {
    tested.sent().into_iter().map(|request| request.type_url).collect()
}

#[test]
fn health_follows_the_listener_request_and_is_hidden_from_envoy() {
    for variant in BOTH {
        let mut tested = Tested::reporting(variant, true);
        tested.open();
        tested.envoy(CLUSTER, &[], "", "");
        // A hello message that arrives earlier is kept.
        hello(&mut tested, 7);
        assert!(tested.effects.is_empty());
        is_listening(&mut tested);
        // The request for listeners was sent before.
        assert_eq!(sent_types(&tested), [LISTENER, REPORT, REPORT]);
        assert!(tested.effects.contains(&Effect::Health(HealthEvent::Session(7))));
        assert_eq!(tested.proxy.reporter().session(), Some(7));
        tested.server(REPORT, &[], "epoch/1", "");
        let acknowledged = Effect::Health(HealthEvent::Acknowledged("epoch/1".to_owned()));
        assert_eq!(tested.effects, [acknowledged]);
        tested.step(Input::Health(status(2)));
        assert_eq!(sent_types(&tested), [REPORT]);
        assert_eq!(tested.sent()[0].error_text(), Ok(Some("HttpStatus".to_owned())));
        // After a reconnect, the newest state is reported again.
        tested.lose_upstream();
        assert_eq!(tested.proxy.reporter().session(), None);
        tested.open_upstream();
        assert_eq!(sent_types(&tested), [CLUSTER, LISTENER, REPORT]);
    }
}

#[test]
fn pushed_probes_are_validated_and_acknowledged() {
    let mut tested = listening(Variant::Sotw);
    hello(&mut tested, 3);
    let validate = tested.effects.iter().find_map(|effect| match effect {
        Effect::Health(HealthEvent::ValidateProbe { hello, .. }) => Some(hello.clone()),
        _ => None,
    });
    let hello = validate.expect("a probe to validate");
    tested.step(Input::ProbeValidated { hello, result: Ok(()) });
    let sent = &tested.sent()[0];
    assert_eq!((&*sent.type_url, &*sent.version, &*sent.nonce), (PROBE, "p1", "h1"));
    tested.server(PROBE, &[], "p2", "h2");
    let sent = &tested.sent()[0];
    assert_eq!((&*sent.version, &*sent.nonce), ("p1", "h2"));
    assert_eq!(sent.error_text(), Ok(Some("hello: expected one resource, got 0".to_owned())));
}

/// The final report waits for its acknowledgement, and the agent decides how long.
#[test]
fn a_terminating_agent_keeps_the_stream_for_the_final_report() {
    for variant in BOTH {
        for ends_first in [false, true] {
            let mut tested = listening(variant);
            hello(&mut tested, 1);
            // New certificates do not matter any more either.
            tested.step(Input::FilesChanged);
            if ends_first {
                tested.step(Input::EnvoyClosed);
                tested.step(Input::Terminating);
            } else {
                tested.step(Input::Terminating);
                tested.step(Input::EnvoyClosed);
            }
            tested.wait(Duration::from_secs(1));
            assert!(!tested.effects.contains(&Effect::CloseUpstream), "{variant:?}, {ends_first}");
            tested.step(Input::Health(terminating(2)));
            assert_eq!(sent_types(&tested), [REPORT]);
            tested.server(REPORT, &[], "epoch/2", "");
            assert!(tested.effects.contains(&Effect::HalfCloseUpstream), "{:?}", tested.effects);
            tested.wait(Duration::from_secs(1));
            assert!(tested.effects.contains(&Effect::Health(HealthEvent::Done)));
            assert!(tested.effects.contains(&Effect::CloseUpstream));
            assert_eq!(tested.proxy.view(tested.now).connected, None);
        }
    }
}

/// Each row has the state of the stream when Envoy ends: nothing was requested, only clusters were,
/// or the server gets no reports because it refused them.
#[test]
fn the_final_report_does_not_wait_for_an_envoy_that_has_gone() {
    for variant in BOTH {
        for (row, ends_first) in [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)] {
            let mut tested = Tested::reporting(variant, true);
            match row {
                0 => tested.open(),
                1 => tested = configure(tested),
                _ => {
                    tested = listening(variant);
                    for _ in 0..2 {
                        report(&mut tested);
                        end_stream(&mut tested);
                    }
                    assert!(is_refused(&tested));
                }
            }
            let mut inputs = [Input::Terminating, Input::EnvoyClosed];
            if ends_first {
                inputs.reverse();
            }
            for input in inputs {
                tested.step(input);
            }
            tested.step(Input::Health(terminating(9)));
            assert_eq!(sent_types(&tested), [REPORT], "{variant:?}, {row}, {ends_first}");
            // No hello message arrives, so the report counts as delivered soon.
            tested.tick_until(|effect| *effect == Effect::HalfCloseUpstream);
        }
    }
}

/// Envoy drains, and needs its stream as long as it runs.
#[test]
fn the_final_report_leaves_the_stream_to_envoy() {
    let mut tested = listening(Variant::Sotw);
    hello(&mut tested, 1);
    tested.step(Input::Terminating);
    tested.step(Input::Health(terminating(2)));
    tested.server(REPORT, &[], "epoch/2", "");
    tested.wait(Duration::from_secs(3));
    assert_eq!(tested.effects, [Effect::Health(HealthEvent::Done)]);
    assert!(tested.proxy.view(tested.now).connected.is_some());
}

#[test]
fn a_server_that_acknowledges_nothing_gets_another_stream() {
    let mut tested = listening(Variant::Sotw);
    hello(&mut tested, 1);
    tested.tick_until(|effect| *effect == Effect::CloseUpstream);
    assert_eq!(tested.now, Duration::from_secs(20));
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    assert!(tested.effects.iter().any(is_opened));
}

/// Waits until the first report on the current stream.
fn report(tested: &mut Tested) {
    tested.tick_until(is_opened);
    assert!(sent_types(tested).contains(&REPORT.to_owned()));
}

fn report_again(tested: &mut Tested) {
    let generation = tested.generation + 1;
    tested.generation = generation;
    tested.step(Input::Health(status(generation)));
    assert!(sent_types(tested).contains(&REPORT.to_owned()));
}

/// The control plane rejects the stream, and the next one is opened. Returns the logged pause.
fn end_stream(tested: &mut Tested) -> Option<Duration> {
    end_with(tested, Input::UpstreamClosed { is_rejected: true, reason: "InvalidArgument".to_owned() })
}

fn end_with(tested: &mut Tested, end: Input) -> Option<Duration> {
    tested.step(end);
    let pause = tested.effects.iter().find_map(|effect| match effect {
        Effect::Event(Event::HealthRefused { pause, .. }) => Some(*pause),
        _ => None,
    });
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    pause
}

fn lost() -> Input {
    Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() }
}

/// A response for which the agent closes the stream.
fn malformed() -> Input {
    Input::UpstreamResponse(Bytes::from_static(b"\xff"))
}

fn is_refused(tested: &Tested) -> bool {
    tested.proxy.view(tested.now).is_health_refused
}

fn listening(variant: Variant) -> Tested {
    let mut tested = configure(Tested::reporting(variant, true));
    is_listening(&mut tested);
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
        let mut ended = tested.now;
        assert_eq!(end_stream(&mut tested), Some(Duration::from_secs(60)));
        assert!(is_refused(&tested));
        // The same stream finds out whether the control plane was upgraded, or the pause doubles.
        for pause in [60, 120, 240, 480, 960, 1920, 3600, 3600] {
            let streams = tested.proxy.view(tested.now).streams;
            report(&mut tested);
            assert_eq!(tested.now - ended, Duration::from_secs(pause), "{variant:?}");
            assert_eq!(tested.proxy.view(tested.now).streams, streams, "the stream stays open");
            assert!(!is_refused(&tested));
            ended = tested.now;
            let next = Duration::from_secs((2 * pause).min(3600));
            assert_eq!(end_stream(&mut tested), Some(next));
            assert!(is_refused(&tested));
        }
        // A stream that is opened during the pause gets none before its end either.
        end_stream(&mut tested);
        assert!(is_refused(&tested));
        report(&mut tested);
        assert_eq!(tested.now - ended, HOUR);
        tested.server(REPORT, &[], "epoch/1", "");
        end_stream(&mut tested);
        assert!(!is_refused(&tested));
        let opened = tested.now;
        report(&mut tested);
        assert_eq!(tested.now, opened, "a control plane that answers gets reports at once");
    }
}

/// Two transport losses right after reports look like refusals, until a stream outlives a report.
#[test]
fn a_stream_without_reports_gets_them_after_the_pause() {
    let mut tested = listening(Variant::Sotw);
    report(&mut tested);
    assert_eq!(end_with(&mut tested, lost()), None);
    report(&mut tested);
    let ended = tested.now;
    assert_eq!(end_with(&mut tested, lost()), Some(Duration::from_secs(60)));
    report(&mut tested);
    assert_eq!(tested.now - ended, Duration::from_secs(60));
    tested.now += Duration::from_secs(6);
    assert_eq!(end_with(&mut tested, lost()), None);
    let opened = tested.now;
    report(&mut tested);
    assert_eq!(tested.now, opened);
}

/// istiod answers no report. Each row has the times between the first report, those that follow it,
/// and the end of the stream, in seconds.
#[test]
fn streams_that_end_for_other_reasons_refuse_nothing() {
    let rejected = || Input::UpstreamClosed { is_rejected: true, reason: "InvalidArgument".to_owned() };
    for (what, seconds, end) in [
        ("a stream that outlives the report", &[6][..], rejected as fn() -> Input),
        ("a stream that is lost after it has outlived the report", &[6], lost),
        ("a stream that outlives the first report", &[30, 0], rejected),
        ("a stream that is lost after it has outlived the first report", &[30, 0], lost),
        ("reports in quick succession", &[3, 3, 3], rejected),
        ("reports in quick succession, and a loss", &[3, 3, 3], lost),
        ("a malformed response", &[0], malformed),
    ] {
        let mut tested = listening(Variant::Sotw);
        for round in 0..4 {
            report(&mut tested);
            for (index, seconds) in seconds.iter().enumerate() {
                if index > 0 {
                    report_again(&mut tested);
                }
                tested.now += Duration::from_secs(*seconds);
            }
            assert_eq!(end_with(&mut tested, end()), None, "{what}, {round}");
        }
    }
    let mut tested = listening(Variant::Sotw);
    for round in 0..6 {
        report(&mut tested);
        // Every other stream outlives the report.
        tested.now += Duration::from_secs(if round % 2 == 0 { 6 } else { 0 });
        assert_eq!(end_with(&mut tested, if round % 3 == 0 { lost() } else { rejected() }), None, "{round}");
    }
    for end in [rejected, lost, rejected, lost] {
        assert_eq!(end_with(&mut tested, end()), None, "a stream without a report");
    }
}

/// The agent itself opens another stream, for example with a new certificate.
#[test]
fn a_stream_that_the_agent_ends_shows_that_reports_are_accepted() {
    let mut tested = listening(Variant::Sotw);
    report(&mut tested);
    end_stream(&mut tested);
    report(&mut tested);
    tested.step(Input::FilesChanged);
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    report(&mut tested);
    assert_eq!(end_stream(&mut tested), None);
}

/// The agent ends the stream of the earlier Envoy, and the next attempt fails.
#[test]
fn an_envoy_that_reconnects_refuses_no_report() {
    let mut tested = listening(Variant::Sotw);
    for _ in 0..4 {
        report(&mut tested);
        tested.step(Input::EnvoyOpened(Variant::Sotw));
        assert_eq!(end_with(&mut tested, lost()), None);
        is_listening(&mut tested);
    }
    assert!(!is_refused(&tested));
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
    tested.step(Input::UpstreamOpened { node: agent(), server: "other:15012".to_owned() });
    assert!(!is_refused(&tested));
    report(&mut tested);
}
