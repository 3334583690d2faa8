//! A version says something only to the upstream stream that has sent it. Another server, or the same one
//! after a restart, counts from 1 again and would take it for its own.

use xds::type_url::CLUSTER;
use xds::{ResourceRef, ResponseHead};

use super::super::*;
use super::support::{BOTH, EDS, HOUR, Tested, configured, request, resource, unversioned};

/// An Envoy that started from the cache, and whose control plane can be reached now.
fn reconnected(variant: Variant) -> Tested {
    let mut tested = configured(variant).restarted(HOUR);
    tested.step(Input::EnvoyOpened(variant));
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
    for (type_url, names, version) in [(CLUSTER, &[][..], "c1"), (EDS, &["a"], "e1")] {
        tested.envoy(type_url, names, "", "");
        let nonce = tested.delivered()[0].nonce.clone();
        tested.envoy(type_url, if variant == Variant::Sotw { names } else { &[] }, version, &nonce);
    }
    tested.tick_until(|effect| *effect == Effect::Connect);
    tested.open_upstream();
    tested
}

#[test]
fn a_cached_version_is_never_sent() {
    for variant in BOTH {
        let mut tested = reconnected(variant);
        let sent = tested.sent();
        assert!(sent.iter().all(|request| request.version.is_empty()), "{variant:?}");
        if variant == Variant::Delta {
            assert!(sent.iter().all(|request| request.initial_versions == unversioned(&["a"])));
        }
        // Envoy changes its subscription before the first response.
        tested.envoy(EDS, if variant == Variant::Sotw { &["a", "b"] } else { &["b"] }, "e1", "");
        assert_eq!((&*tested.sent()[0].version, &*tested.sent()[0].nonce), ("", ""), "{variant:?}");
        // Envoy rejects the first response.
        tested.server(EDS, &[("a", "bad")], "1", "m1");
        let nonce = tested.delivered()[0].nonce.clone();
        let mut nack = request(variant, EDS, &["a"], "e1", &nonce);
        nack.error = Some(Bytes::from_static(b"\x12\x03bad"));
        tested.step(Input::EnvoyRequest(nack.encode(variant)));
        assert_eq!((&*tested.sent()[0].version, &*tested.sent()[0].nonce), ("", "m1"), "{variant:?}");
        // From the first accepted response on, versions are those of this stream.
        tested.accepted(EDS, &["a"], &[("a", "5")], "2", "m2");
        let version = if variant == Variant::Sotw { "2" } else { "" };
        assert_eq!((&*tested.sent()[0].version, &*tested.sent()[0].nonce), (version, "m2"), "{variant:?}");
    }
}

/// The same version, with another content.
#[test]
fn a_control_plane_that_counts_from_1_again_is_not_mistaken_for_the_one_before() {
    for variant in BOTH {
        for is_cached in [true, false] {
            let mut tested = if is_cached { reconnected(variant) } else { configured(variant) };
            if !is_cached {
                tested.lose_upstream();
                tested.open_upstream();
            }
            let stored = resource(&tested.stored(), CLUSTER, "a");
            let other = super::support::any("a", "other");
            let changed = ResourceRef { name: "a", version: &stored.version, any: &other };
            let head = ResponseHead { type_url: CLUSTER, version: "c1", nonce: "m1" };
            tested.step(Input::UpstreamResponse(head.encode(variant, [changed], [])));
            let delivered = tested.delivered();
            assert_eq!(delivered[0].resources[0].any, other, "{variant:?}, {is_cached}");
            tested.envoy(CLUSTER, &[], &delivered[0].version, &delivered[0].nonce);
            assert_eq!(resource(&tested.stored(), CLUSTER, "a").any, other);
        }
    }
}

/// What has neither another version nor another content is not sent to Envoy, which would apply it again.
#[test]
fn what_envoy_got_from_the_cache_is_not_sent_again() {
    for variant in BOTH {
        let mut tested = reconnected(variant);
        tested.server(CLUSTER, &[("a", "1")], "c1", "m1");
        assert!(tested.delivered().is_empty(), "{variant:?}");
        let version = if variant == Variant::Sotw { "c1" } else { "" };
        assert_eq!((&*tested.sent()[0].version, &*tested.sent()[0].nonce), (version, "m1"));
        assert!(tested.proxy.stale(tested.now).is_some(), "the endpoints are not confirmed yet");
        tested.server(EDS, &[("a", "1")], "e1", "m2");
        assert_eq!(tested.proxy.stale(tested.now), None);
    }
}

/// Resources that the server does not have any more are removed.
#[test]
fn removed_resources_do_not_stay() {
    let mut tested = reconnected(Variant::Sotw);
    tested.accepted(CLUSTER, &[], &[("b", "1")], "1", "m1");
    assert_eq!(tested.stored().0[CLUSTER].names().collect::<Vec<_>>(), ["b"]);
    let mut tested = reconnected(Variant::Delta);
    let head = ResponseHead { type_url: CLUSTER, version: "1", nonce: "m1" };
    tested.step(Input::UpstreamResponse(head.encode(Variant::Delta, [], ["a"])));
    let delivered = tested.delivered();
    assert_eq!(delivered[0].removed, ["a"]);
    tested.envoy(CLUSTER, &[], "", &delivered[0].nonce);
    assert!(tested.stored().0[CLUSTER].is_empty());
}

/// A removal that Envoy has not acknowledged yet counts too.
#[test]
fn a_resource_that_was_removed_does_not_come_back_from_the_cache() {
    let mut tested = configured(Variant::Delta).restarted(HOUR);
    tested.open();
    tested.envoy(CLUSTER, &[], "", "");
    let head = ResponseHead { type_url: CLUSTER, version: "1", nonce: "m1" };
    tested.step(Input::UpstreamResponse(head.encode(Variant::Delta, [], ["a"])));
    assert_eq!(tested.delivered().len(), 1);
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() });
    assert!(tested.delivered().is_empty());
}
