//! What one request says about several responses, in state of the world. Envoy sends none for clusters
//! while some of them warm, and the next one has the error of the last rejected response, also if it has
//! accepted a newer one.

use xds::type_url::CLUSTER;

use super::super::*;
use super::support::{EDS, HOUR, Tested, any, configured, request, resource};

/// What Envoy does with the responses c2, c3, ….
struct Case {
    /// Versions of the responses.
    versions: &'static [&'static str],
    /// The version of Envoy's request, as the number of a response; 0 is the configuration before.
    accepted: usize,
    has_error: bool,
    /// The responses that are acknowledged and rejected at the control plane.
    sent: &'static [(&'static str, bool)],
    /// Acknowledged and rejected responses in the view.
    counted: (u64, u64),
}

const CASES: [Case; 8] = [
    Case { versions: &["c2"], accepted: 1, has_error: false, sent: &[("n2", true)], counted: (1, 0) },
    Case { versions: &["c2"], accepted: 0, has_error: true, sent: &[("n2", false)], counted: (0, 1) },
    // The version is the same, so only the error counts.
    Case { versions: &["c1"], accepted: 0, has_error: true, sent: &[("n2", false)], counted: (0, 1) },
    Case { versions: &["c2", "c3"], accepted: 2, has_error: false, sent: &[("n3", true)], counted: (2, 0) },
    // The older response was rejected.
    Case {
        versions: &["c2", "c3"],
        accepted: 2,
        has_error: true,
        sent: &[("n2", false), ("n3", true)],
        counted: (1, 1),
    },
    // The newest response was rejected, and the previous one was not.
    Case { versions: &["c2", "c3"], accepted: 1, has_error: true, sent: &[("n3", false)], counted: (1, 1) },
    Case { versions: &["c2", "c3"], accepted: 0, has_error: true, sent: &[("n3", false)], counted: (0, 1) },
    // A server that uses a version again: Envoy receives another one.
    Case {
        versions: &["c1", "c1", "c1"],
        accepted: 2,
        has_error: true,
        sent: &[("n4", false)],
        counted: (1, 1),
    },
];

#[test]
fn the_version_says_which_response_envoy_runs() {
    for (number, case) in CASES.iter().enumerate() {
        let mut tested = configured(Variant::Sotw);
        let before = tested.proxy.view(tested.now).types[0].clone();
        let mut delivered = Vec::new();
        for (index, version) in case.versions.iter().enumerate() {
            let content = (index + 1).to_string();
            tested.server(CLUSTER, &[("a", &content)], version, &format!("n{}", index + 2));
            delivered.extend(tested.delivered());
        }
        let accepted = case.accepted.checked_sub(1).map_or("c1", |index| &delivered[index].version);
        let mut verdict = request(Variant::Sotw, CLUSTER, &[], accepted, &delivered.last().unwrap().nonce);
        verdict.error = case.has_error.then(|| Bytes::from_static(b"\x12\x03bad"));
        tested.step(Input::EnvoyRequest(verdict.encode(Variant::Sotw)));

        let stored = resource(&tested.stored(), CLUSTER, "a");
        let content = if case.accepted == 0 { "1".to_owned() } else { case.accepted.to_string() };
        assert_eq!(stored.any, any("a", &content), "case {number}");
        let sent = tested.sent();
        let verdicts: Vec<_> = sent.iter().map(|sent| (&*sent.nonce, sent.error.is_none())).collect();
        assert_eq!(verdicts, case.sent, "case {number}");
        let version = case.accepted.checked_sub(1).map_or("c1", |index| case.versions[index]);
        assert_eq!(sent.last().unwrap().version, version, "case {number}: the control plane's own version");
        let view = &tested.proxy.view(tested.now).types[0];
        assert_eq!((view.acks - before.acks, view.nacks - before.nacks), case.counted, "case {number}");
        assert_eq!(view.in_flight, 0);
    }
}

/// Envoy has accepted all of them if there is no error. Each has its own endpoints.
#[test]
fn several_responses_of_a_type_that_is_sent_in_parts_are_all_stored() {
    let mut tested = configured(Variant::Sotw);
    tested.envoy(EDS, &["a", "b"], "e1", "");
    tested.server(EDS, &[("a", "2")], "e2", "n3");
    tested.server(EDS, &[("b", "3")], "e3", "n4");
    let nonce = tested.delivered()[0].nonce.clone();
    tested.envoy(EDS, &["a", "b"], "e3", &nonce);
    let stored = tested.stored();
    let content = |name: &str| resource(&stored, EDS, name).any;
    assert_eq!((content("a"), content("b")), (any("a", "2"), any("b", "3")));
}

/// Envoy ignores a response of a type that nothing watches any more, and repeats the older version.
#[test]
fn an_ignored_response_is_not_stored() {
    let mut tested = configured(Variant::Sotw);
    tested.server(EDS, &[("a", "2")], "e2", "n3");
    let nonce = tested.delivered()[0].nonce.clone();
    tested.envoy(EDS, &["a"], "e1", &nonce);
    assert_eq!(resource(&tested.stored(), EDS, "a").any, any("a", "1"));
    assert_eq!((&*tested.sent()[0].version, &*tested.sent()[0].nonce), ("e1", "n3"));
    let view = &tested.proxy.view(tested.now).types[1];
    assert_eq!((view.acks, view.nacks), (1, 0));
}

/// The next response with the same nonce and version is the one that Envoy sees first on its stream.
#[test]
fn an_old_error_in_the_first_request_of_a_stream_rejects_nothing() {
    let mut tested = configured(Variant::Sotw);
    tested.step(Input::EnvoyOpened(Variant::Sotw));
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    let mut first = request(Variant::Sotw, CLUSTER, &[], "c1", "");
    first.error = Some(Bytes::from_static(b"\x12\x03old"));
    tested.step(Input::EnvoyRequest(first.encode(Variant::Sotw)));
    let sent = &tested.sent()[0];
    assert_eq!((sent.error.is_none(), &*sent.version), (true, ""));
    assert_eq!(tested.proxy.view(tested.now).types[0].nacks, 0);
}

/// An agent that restarts without a control plane serves what Envoy ran.
#[test]
fn after_a_restart_envoy_gets_what_it_accepted_with_an_old_error() {
    let mut tested = configured(Variant::Sotw);
    tested.server(CLUSTER, &[("a", "2"), ("bad", "2")], "c2", "n3");
    tested.server(CLUSTER, &[("c", "3")], "c3", "n4");
    let nonce = tested.delivered()[0].nonce.clone();
    let mut verdict = request(Variant::Sotw, CLUSTER, &[], "c3", &nonce);
    verdict.error = Some(Bytes::from_static(b"\x12\x03bad"));
    tested.step(Input::EnvoyRequest(verdict.encode(Variant::Sotw)));
    let mut tested: Tested = tested.restarted(HOUR);
    tested.step(Input::EnvoyOpened(Variant::Sotw));
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
    tested.envoy(CLUSTER, &[], "", "");
    let names: Vec<_> = tested.delivered()[0].resources.iter().map(|new| new.name.clone()).collect();
    assert_eq!(names, ["c"]);
}
