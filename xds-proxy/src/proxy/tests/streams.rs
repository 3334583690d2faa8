//! One property after another, on both variants where they agree.

use std::time::Duration;

use xds::type_url::{CLUSTER, LISTENER, SECRET};

use super::super::*;
use super::support::{BOTH, EDS, HOUR, MAX_AGE, Tested, configured, unversioned, without_version};

#[test]
fn the_first_request_carries_both_nodes_merged() {
    for variant in BOTH {
        let mut tested = Tested::new(variant);
        tested.open();
        tested.envoy(CLUSTER, &[], "", "");
        let sent = tested.sent();
        assert_eq!(sent[0].node.as_deref(), Some(&b"\x0a\x01n\x0a\x05agent"[..]));
        tested.envoy(EDS, &["a"], "", "");
        assert_eq!(tested.sent()[0].node, None);
    }
}

#[test]
fn verdicts_reach_the_control_plane_with_its_own_nonces() {
    for variant in BOTH {
        let mut tested = Tested::new(variant);
        tested.open();
        tested.envoy(CLUSTER, &[], "", "");
        tested.accepted(CLUSTER, &[], &[("a", "1")], "c1", "server-nonce");
        let ack = &tested.sent()[0];
        assert_eq!((&*ack.nonce, ack.error.is_none()), ("server-nonce", true));
        tested.server(CLUSTER, &[("a", "bad")], "c2", "other");
        let nonce = tested.delivered()[0].nonce.clone();
        let mut nack = super::support::request(variant, CLUSTER, &[], "c1", &nonce);
        nack.error = Some(b"\x12\x03bad".to_vec().into());
        tested.step(Input::EnvoyRequest(nack.encode(variant)));
        let sent = &tested.sent()[0];
        assert_eq!((&*sent.nonce, sent.error_text()), ("other", Ok(Some("bad".to_owned()))));
        let view = tested.proxy.view(tested.now);
        assert_eq!((view.types[0].acks, view.types[0].nacks), (1, 1));
        assert_eq!(view.types[0].last_nack.as_ref().map(|(text, _)| &**text), Some("bad"));
    }
}

#[test]
fn the_same_nack_is_an_event_only_once() {
    for variant in BOTH {
        let mut tested = configured(variant);
        for (round, (text, is_event)) in
            [("bad", true), ("bad", false), ("worse", true), ("bad", true)].iter().enumerate()
        {
            // A control plane may repeat its nonces.
            tested.server(CLUSTER, &[("a", "bad")], "c2", "same");
            let nonce = tested.delivered()[0].nonce.clone();
            let mut nack = super::support::request(variant, CLUSTER, &[], "c1", &nonce);
            let length = u8::try_from(text.len()).unwrap();
            nack.error = Some([&[0x12, length][..], text.as_bytes()].concat().into());
            tested.step(Input::EnvoyRequest(nack.encode(variant)));
            let is_nack = |effect: &Effect| matches!(effect, Effect::Event(Event::Nack { .. }));
            assert_eq!(tested.effects.iter().any(is_nack), *is_event, "round {round}");
            assert_eq!(tested.sent()[0].nonce, "same");
            assert_eq!(tested.proxy.view(tested.now).types[0].nacks, round as u64 + 1);
        }
    }
}

#[test]
fn a_lost_upstream_stream_is_replayed_and_envoy_sees_nothing() {
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.lose_upstream();
        assert!(tested.delivered().is_empty() && !tested.effects.contains(&Effect::CloseEnvoy("")));
        tested.open_upstream();
        let sent = tested.sent();
        assert_eq!(sent.iter().map(|request| &*request.type_url).collect::<Vec<_>>(), [CLUSTER, EDS]);
        assert!(sent[0].node.is_some() && sent[1].node.is_none());
        assert!(sent.iter().all(|request| request.nonce.is_empty() && request.error.is_none()));
        assert_eq!(sent[1].subscribe, ["a"]);
        match variant {
            Variant::Sotw => assert!(sent.iter().all(|request| request.version.is_empty())),
            Variant::Delta => assert_eq!(sent[1].initial_versions, unversioned(&["a"])),
        }
        // What Envoy holds already is not sent again, and is acknowledged for it.
        tested.server(CLUSTER, &[("a", "1")], "c1", "m1");
        assert!(tested.delivered().is_empty());
        assert_eq!(tested.sent()[0].nonce, "m1");
        tested.server(EDS, &[("a", "2")], "e2", "m2");
        assert_eq!(tested.delivered()[0].version, "e2");
    }
}

/// istiod sends no versions of resources, so an equal version does not mean an equal resource.
#[test]
fn resources_without_versions_are_compared_after_a_reconnect() {
    let mut tested = Tested::new(Variant::Delta);
    tested.open();
    tested.envoy(EDS, &["a"], "", "");
    tested.step(Input::UpstreamResponse(without_version(EDS, ("a", "1"), "n1")));
    let nonce = tested.delivered()[0].nonce.clone();
    tested.envoy(EDS, &[], "", &nonce);
    for (content, is_delivered) in [("1", false), ("2", true)] {
        tested.lose_upstream();
        tested.open_upstream();
        tested.step(Input::UpstreamResponse(without_version(EDS, ("a", content), "n2")));
        assert_eq!(!tested.delivered().is_empty(), is_delivered, "{content}");
    }
}

#[test]
fn an_ack_for_an_old_stream_never_reaches_a_new_one() {
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.server(CLUSTER, &[("a", "2")], "c2", "n9");
        let nonce = tested.delivered()[0].nonce.clone();
        tested.lose_upstream();
        tested.open_upstream();
        tested.envoy(CLUSTER, &[], "c2", &nonce);
        assert!(
            tested.sent().iter().all(|request| request.nonce.is_empty()),
            "{variant:?}: {:?}",
            tested.sent()
        );
        // The server uses the same nonce again on its new stream.
        tested.server(CLUSTER, &[("a", "3")], "c3", "n9");
        let new = tested.delivered()[0].nonce.clone();
        assert_ne!(new, nonce);
        tested.envoy(CLUSTER, &[], "c3", &new);
        assert_eq!(tested.sent()[0].nonce, "n9");
    }
}

#[test]
fn a_changed_subscription_after_a_skipped_response_uses_its_nonce() {
    let mut tested = configured(Variant::Sotw);
    let nonce = tested.accepted(EDS, &["a"], &[("a", "2")], "e2", "n3");
    tested.lose_upstream();
    tested.open_upstream();
    tested.server(EDS, &[("a", "2")], "e2", "m1");
    assert!(tested.delivered().is_empty());
    tested.envoy(EDS, &["a", "b"], "e2", &nonce);
    let sent = &tested.sent()[0];
    assert_eq!((&*sent.nonce, sent.subscribe.len()), ("m1", 2));
}

#[test]
fn a_resubscription_during_an_outage_is_answered_even_if_nothing_changed() {
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.step(Input::UpstreamClosed { is_rejected: false, reason: "reset".to_owned() });
        tested.envoy(EDS, &["a"], "e1", "");
        tested.tick_until(|effect| *effect == Effect::Connect);
        tested.open_upstream();
        let replayed = tested.sent().pop().unwrap();
        assert!(
            replayed.initial_versions == if variant == Variant::Sotw { vec![] } else { unversioned(&["a"]) }
        );
        tested.server(EDS, &[("a", "1")], "e1", "m1");
        assert_eq!(tested.delivered().len(), 1, "{variant:?}");
    }
}

#[test]
fn an_envoy_that_starts_during_an_outage_receives_the_last_good_configuration() {
    for variant in BOTH {
        let mut tested = configured(variant).restarted(HOUR);
        tested.step(Input::EnvoyOpened(variant));
        tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
        tested.envoy(CLUSTER, &[], "", "");
        let clusters = tested.delivered();
        assert_eq!(clusters[0].resources[0].name, "a", "{variant:?}");
        tested.envoy(CLUSTER, &[], &clusters[0].version, &clusters[0].nonce);
        tested.envoy(EDS, &["a"], "", "");
        let endpoints = tested.delivered();
        assert_eq!(endpoints[0].resources[0].name, "a");
        tested.envoy(EDS, if variant == Variant::Sotw { &["a"] } else { &[] }, "e1", &endpoints[0].nonce);
        tested.envoy(LISTENER, &[], "", "");
        assert!(tested.delivered().is_empty(), "never received, so never served");
        tested.now += HOUR;
        assert_eq!(tested.proxy.stale(tested.now), Some(2 * HOUR));
        // The control plane answers again, with the same clusters and other endpoints.
        tested.tick_until(|effect| *effect == Effect::Connect);
        tested.open_upstream();
        assert!(tested.sent().iter().all(|request| request.nonce.is_empty()));
        tested.server(CLUSTER, &[("a", "1")], "c1", "m1");
        assert!(tested.delivered().is_empty());
        tested.server(EDS, &[("a", "9")], "e9", "m2");
        assert_eq!(tested.delivered().len(), 1);
        assert_eq!(tested.proxy.stale(tested.now), None);
    }
}

/// In state of the world, Envoy repeats its subscription in each request, and may list no name.
#[test]
fn all_resources_of_a_type_are_served_once() {
    const SCOPED_ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration";
    for variant in BOTH {
        let mut tested = configured(variant);
        tested.envoy(SCOPED_ROUTE, &[], "", "");
        tested.accepted(SCOPED_ROUTE, &[], &[("a", "1"), ("b", "1")], "s1", "n4");
        let mut tested = tested.restarted(HOUR);
        tested.step(Input::EnvoyOpened(variant));
        tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
        tested.envoy(SCOPED_ROUTE, &[], "", "");
        let delivered = tested.delivered();
        assert_eq!((delivered.len(), delivered[0].resources.len()), (1, 2), "{variant:?}");
        tested.envoy(SCOPED_ROUTE, &[], "s1", &delivered[0].nonce);
        assert!(tested.delivered().is_empty(), "{variant:?}");
    }
}

#[test]
fn a_silent_control_plane_delays_the_last_good_configuration_only_briefly() {
    let mut tested = configured(Variant::Sotw).restarted(HOUR);
    tested.open();
    tested.envoy(CLUSTER, &[], "", "");
    assert!(tested.delivered().is_empty());
    tested.tick_until(|effect| matches!(effect, Effect::SendEnvoy(..)));
    assert!(tested.now <= Duration::from_millis(300));
    // An answer that arrives later replaces it.
    tested.server(CLUSTER, &[("a", "5")], "c5", "n1");
    assert_eq!(tested.delivered()[0].version, "c5");
}

#[test]
fn old_configurations_and_secrets_are_not_served() {
    let mut tested = configured(Variant::Sotw).restarted(MAX_AGE);
    tested.now += Duration::from_secs(1);
    tested.step(Input::EnvoyOpened(Variant::Sotw));
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
    tested.envoy(CLUSTER, &[], "", "");
    assert!(tested.delivered().is_empty());
    assert!(tested.effects.iter().any(|effect| matches!(effect, Effect::Event(Event::Expired { .. }))));

    let mut tested = Tested::new(Variant::Sotw);
    tested.open();
    tested.envoy(SECRET, &["key"], "", "");
    tested.accepted(SECRET, &["key"], &[("key", "private")], "s1", "n1");
    assert!(tested.proxy.last_good().0.is_empty(), "secrets are not kept in memory either");
}

#[test]
fn types_without_a_subscription_are_dropped() {
    for variant in BOTH {
        let mut tested = configured(variant);
        for number in 0..100 {
            tested.server(&format!("type.googleapis.com/unknown{number}"), &[("x", "1")], "1", "1");
            assert!(tested.delivered().is_empty());
        }
        let view = tested.proxy.view(tested.now);
        assert_eq!((view.not_subscribed, view.types.len()), (100, 2));
    }
}

#[test]
fn a_flood_stops_at_the_limit_and_an_envoy_that_never_acknowledges_is_disconnected() {
    let mut tested = configured(Variant::Sotw);
    let mut count = 0;
    while tested.proxy.reads_upstream() {
        count += 1;
        tested.server(CLUSTER, &[("a", &count.to_string())], &count.to_string(), "same");
    }
    assert_eq!(count, 1 + IN_FLIGHT_LIMIT);
    tested.tick_until(|effect| matches!(effect, Effect::CloseEnvoy(_)));
    assert!(tested.proxy.reads_upstream());
}

#[test]
fn garbage_ends_the_upstream_stream_only() {
    let mut tested = configured(Variant::Delta);
    tested.step(Input::UpstreamResponse(b"\xff\xff\xff".to_vec().into()));
    assert!(tested.effects.contains(&Effect::AbortUpstream("the control plane sent a malformed response")));
    assert!(!tested.effects.iter().any(|effect| matches!(effect, Effect::CloseEnvoy(_))));
    assert!(tested.proxy.view(tested.now).error.is_some_and(|error| error.contains("malformed")));
}

#[test]
fn the_upstream_stream_stays_open_for_the_final_report() {
    let mut tested = configured(Variant::Sotw);
    tested.step(Input::EnvoyClosed);
    assert!(!tested.effects.contains(&Effect::CloseUpstream));
    tested.tick_until(|effect| *effect == Effect::CloseUpstream);
    assert!(tested.now >= ENVOY_GRACE);
}

#[test]
fn pauses_between_attempts_grow_and_an_answer_resets_them() {
    let mut tested = Tested::new(Variant::Sotw);
    tested.step(Input::EnvoyOpened(Variant::Sotw));
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let before = tested.now;
        tested.lose_upstream();
        pauses.push(tested.now - before);
    }
    assert!(pauses.is_sorted() && pauses[7] <= DELAYS[1], "{pauses:?}");
    tested.open_upstream();
    tested.envoy(CLUSTER, &[], "", "");
    tested.server(CLUSTER, &[], "1", "1");
    let before = tested.now;
    tested.lose_upstream();
    assert!(tested.now - before > pauses[0], "a stream that ends soon is no success");
    tested.open_upstream();
    tested.server(CLUSTER, &[], "1", "2");
    tested.now += STABLE_AFTER;
    let before = tested.now;
    tested.lose_upstream();
    assert_eq!(tested.now - before, pauses[0]);
}

#[test]
fn a_type_without_a_subscription_is_not_stale() {
    let mut tested = configured(Variant::Sotw).restarted(HOUR);
    tested.step(Input::EnvoyOpened(Variant::Sotw));
    tested.step(Input::UpstreamClosed { is_rejected: false, reason: "connection refused".to_owned() });
    tested.envoy(EDS, &["a"], "", "");
    assert_eq!(tested.proxy.stale(tested.now), Some(HOUR));
    let nonce = tested.delivered()[0].nonce.clone();
    tested.envoy(EDS, &[], "e1", &nonce);
    assert_eq!(tested.proxy.stale(tested.now), None);
}
