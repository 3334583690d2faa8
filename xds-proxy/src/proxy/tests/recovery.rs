//! What Envoy holds, and what the control plane learns of it, when a stream is lost or the cache is used
//! between a response and its acknowledgement.

use xds::ResponseHead;
use xds::type_url::CLUSTER;

use super::super::*;
use super::support::{BOTH, EDS, HOUR, Tested, configured, request, unversioned};

const MIB: usize = 1 << 20;

/// Envoy rejects the newest response.
fn reject(tested: &mut Tested, type_url: &str, version: &str) {
    let nonce = tested.delivered()[0].nonce.clone();
    let mut nack = request(tested.variant, type_url, &[], version, &nonce);
    nack.error = Some(b"\x12\x03bad".to_vec().into());
    tested.step(Input::EnvoyRequest(nack.encode(tested.variant)));
}

/// An Envoy that received its clusters from the cache while no control plane answered.
fn served_from_cache(variant: Variant) -> Tested {
    let mut tested = configured(variant).restarted(HOUR);
    tested.step(Input::EnvoyOpened(variant));
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
    tested.envoy(CLUSTER, &[], "", "");
    assert_eq!(tested.delivered().len(), 1);
    tested
}

#[test]
fn a_control_plane_learns_what_may_come_from_the_cache() {
    let mut before = Tested::new(Variant::Delta);
    before.open();
    before.envoy(CLUSTER, &[], "", "");
    before.accepted(CLUSTER, &[], &[("a", "1"), ("b", "1")], "c1", "n1");
    let mut tested = before.restarted(HOUR);
    tested.open();
    tested.envoy(CLUSTER, &[], "", "");
    assert_eq!(tested.sent()[0].initial_versions, unversioned(&["a", "b"]));
    tested.tick_until(|effect| matches!(effect, Effect::SendEnvoy(..)));
    assert!(!tested.effects.contains(&Effect::CloseUpstream));
    // The server removes what it does not have, which Envoy accepts although it may not have it either.
    let head = ResponseHead { type_url: CLUSTER, version: "1", nonce: "n1" };
    tested.step(Input::UpstreamResponse(head.encode(Variant::Delta, [], ["b"])));
    let nonce = tested.delivered()[0].nonce.clone();
    tested.envoy(CLUSTER, &[], "", &nonce);
    assert_eq!(tested.stored().0[CLUSTER].names().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn one_large_response_does_not_stop_the_others() {
    for variant in BOTH {
        let mut tested = configured(variant);
        let large = "x".repeat(IN_FLIGHT_SIZE + MIB);
        tested.server(CLUSTER, &[("a", &large)], "c2", "n3");
        assert!(tested.proxy.reads_upstream(), "Envoy acknowledges clusters after their endpoints");
        tested.server(CLUSTER, &[("a", &large)], "c3", "n4");
        assert!(!tested.proxy.reads_upstream());
    }
}

#[test]
fn a_response_after_the_end_of_a_subscription_reaches_envoy_which_acknowledges_it() {
    for variant in BOTH {
        let mut tested = configured(variant);
        let mut end = request(variant, EDS, &[], "e1", "");
        if variant == Variant::Delta {
            end.subscription = Bytes::from_static(b"\x22\x01a");
        }
        tested.step(Input::EnvoyRequest(end.encode(variant)));
        tested.server(EDS, &[("a", "2")], "e2", "n3");
        let nonce = tested.delivered()[0].nonce.clone();
        tested.envoy(EDS, &[], "e2", &nonce);
        assert_eq!(tested.sent()[0].nonce, "n3", "{variant:?}");
    }
}

#[test]
fn after_a_rejected_response_the_accepted_one_is_sent_again() {
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.server(CLUSTER, &[("a", "2")], "c2", "n3");
        reject(&mut tested, CLUSTER, "c1");
        tested.lose_upstream();
        tested.open_upstream();
        if variant == Variant::Delta {
            assert_eq!(tested.sent()[0].initial_versions, unversioned(&["a"]));
        }
        tested.server(CLUSTER, &[("a", "1")], "c1", "m1");
        assert_eq!(tested.delivered().len(), 1, "{variant:?}");
    }
}

#[test]
fn an_unacknowledged_response_has_no_version_on_the_next_stream() {
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.server(CLUSTER, &[("a", "2"), ("b", "1")], "c2", "n3");
        tested.lose_upstream();
        tested.open_upstream();
        let replayed = &tested.sent()[0];
        match variant {
            Variant::Sotw => assert_eq!(replayed.version, ""),
            Variant::Delta => assert_eq!(replayed.initial_versions, unversioned(&["a", "b"])),
        }
    }
}

#[test]
fn configuration_from_the_cache_stays_stale_when_envoy_opens_another_stream() {
    for variant in BOTH {
        let mut tested = served_from_cache(variant);
        let nonce = tested.delivered()[0].nonce.clone();
        tested.envoy(CLUSTER, &[], "c1", &nonce);
        tested.step(Input::EnvoyClosed);
        tested.step(Input::EnvoyOpened(variant));
        let mut again = request(variant, CLUSTER, &[], "c1", "");
        if variant == Variant::Delta {
            again.initial_versions = vec![("a".to_owned(), "1".to_owned())];
        }
        tested.step(Input::EnvoyRequest(again.encode(variant)));
        assert_eq!(tested.proxy.stale(tested.now), Some(HOUR), "{variant:?}");
    }
}

/// A server that answers one type may not know another one.
#[test]
fn silence_about_a_type_says_nothing() {
    let mut tested = served_from_cache(Variant::Sotw);
    tested.envoy(EDS, &["a"], "", "");
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    tested.server(EDS, &[("a", "9")], "e9", "m1");
    tested.now += HOUR;
    tested.step(Input::Tick);
    assert!(tested.proxy.stale(tested.now) > Some(HOUR), "the clusters may have changed");
    tested.server(CLUSTER, &[("a", "1")], "1", "m2");
    assert_eq!(tested.proxy.stale(tested.now), None);
}

#[test]
fn a_rotation_during_an_outage_does_not_reopen_the_next_stream() {
    let mut tested = configured(Variant::Sotw);
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() });
    tested.step(Input::FilesChanged);
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    tested.now += REOPEN_WITHIN;
    tested.step(Input::Tick);
    assert!(!tested.effects.contains(&Effect::CloseUpstream));
}
