//! Floods of resources and names: memory stays bounded, and what fits is still passed on and stored.

use std::sync::Arc;

use xds::type_url::CLUSTER;
use xds::{ITEM_LIMIT, Request, ResourceRef, ResponseHead, put_bytes};

use super::super::limits::{NAMES_SIZE, RESOURCES, TOTAL_SIZE, TYPE_SIZE};
use super::super::*;
use super::support::{BOTH, EDS, Tested, any, configure, configured, request, resource};
use crate::last_good::LastGood;

const MIB: usize = 1 << 20;
const ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";

/// Adds removed names to an incremental response.
pub(super) fn with_removed(response: &[u8], names: impl IntoIterator<Item = String>) -> Bytes {
    let mut message = bytes::BytesMut::from(response);
    names.into_iter().for_each(|name| put_bytes(&mut message, 6, name.as_bytes()));
    message.freeze()
}

/// An incremental response with so many small resources.
fn many(first: usize, count: usize, nonce: &str) -> Bytes {
    let names: Vec<String> = (first..first + count).map(|number| format!("n{number}")).collect();
    let any = any("x", "x");
    let resources = names.iter().map(|name| ResourceRef { name, version: "1", any: &any });
    ResponseHead { type_url: CLUSTER, version: "v", nonce }.encode(Variant::Delta, resources, [])
}

/// Envoy accepts a resource of this size.
fn accepts_large(tested: &mut Tested, type_url: &str, size: usize, version: &str, nonce: &str) {
    let any = super::support::any("a", &"x".repeat(size));
    let resource = ResourceRef { name: "a", version: "9", any: &any };
    let message = ResponseHead { type_url, version, nonce }.encode(tested.variant, [resource], []);
    tested.step(Input::UpstreamResponse(message));
    let names: &[&str] = if type_url == EDS && tested.variant == Variant::Sotw { &["a"] } else { &[] };
    let delivered = tested.delivered().pop().expect("a response for Envoy");
    tested.envoy(type_url, names, version, &delivered.nonce);
}

/// Envoy accepts the newest response of a type; an error rejects it.
fn verdict(tested: &mut Tested, type_url: &str, error: Option<&'static [u8]>) {
    let delivered = tested.delivered().pop().expect("a response for Envoy");
    let mut verdict = request(tested.variant, type_url, &[], &delivered.version, &delivered.nonce);
    verdict.error = error.map(Bytes::from_static);
    tested.step(Input::EnvoyRequest(verdict.encode(tested.variant)));
}

fn names_size(tested: &Tested) -> usize {
    let types = &tested.proxy.downstream.as_ref().expect("Envoy is connected").types;
    types.iter().map(TypeState::names_size).sum()
}

fn events(tested: &Tested) -> usize {
    tested.effects.iter().filter(|effect| matches!(effect, Effect::Event(Event::NotStored { .. }))).count()
}

fn is_disconnected(tested: &Tested) -> bool {
    tested.effects.iter().any(|effect| matches!(effect, Effect::CloseEnvoy(_)))
}

#[test]
fn a_type_that_is_too_large_is_not_stored_in_part() {
    let mut tested = configured(Variant::Delta);
    accepts_large(&mut tested, CLUSTER, TYPE_SIZE, "c2", "n3");
    assert_eq!((events(&tested), tested.not_stored()), (1, vec!["more than 48 MiB"]));
    assert_eq!(tested.sent()[0].nonce, "n3", "it is passed on");
    tested.accepted(CLUSTER, &[], &[("c", "1")], "c3", "n4");
    assert_eq!(events(&tested), 0);
    assert_eq!(tested.stored().0.keys().collect::<Vec<_>>(), [EDS]);
}

#[test]
fn a_complete_set_that_fits_is_stored_again() {
    let mut tested = configured(Variant::Sotw);
    accepts_large(&mut tested, CLUSTER, TYPE_SIZE, "c2", "n3");
    assert_eq!(tested.not_stored().len(), 1);
    tested.accepted(CLUSTER, &[], &[("b", "1")], "c3", "n4");
    assert!(tested.not_stored().is_empty());
    assert_eq!(tested.stored().0[CLUSTER].version, "c3");
}

#[test]
fn all_types_together_have_a_limit() {
    for variant in BOTH {
        let mut tested = configured(variant);
        accepts_large(&mut tested, CLUSTER, TOTAL_SIZE / 2, "c2", "n3");
        accepts_large(&mut tested, EDS, TOTAL_SIZE / 2, "e2", "n4");
        assert_eq!(tested.not_stored(), ["all types together have more than 64 MiB"], "{variant:?}");
        assert_eq!(tested.stored().0.keys().collect::<Vec<_>>(), [CLUSTER]);
    }
}

#[test]
fn types_beyond_the_limit_are_passed_on_but_not_stored() {
    let mut tested = Tested::new(Variant::Sotw);
    // An Envoy that subscribes to other types with each stream.
    for round in 0..4 {
        tested.step(Input::EnvoyOpened(Variant::Sotw));
        if round > 0 {
            tested.tick_until(|effect| *effect == Effect::Connect);
        }
        tested.open_upstream();
        for number in 0..TYPE_LIMIT {
            let type_url = format!("type.googleapis.com/{round}.{number}");
            tested.envoy(&type_url, &["a"], "", "");
            tested.accepted(&type_url, &["a"], &[("a", "1")], "1", &format!("n{number}"));
        }
        assert_eq!(tested.not_stored().len(), if round == 0 { 0 } else { TYPE_LIMIT });
        assert!(tested.proxy.counters.len() <= 2 * TYPE_LIMIT, "{}", tested.proxy.counters.len());
    }
    assert_eq!((tested.stored().0.len(), tested.proxy.not_stored.len()), (TYPE_LIMIT, 0));
}

#[test]
fn types_that_are_too_large_count_too() {
    let mut proxy = Tested::new(Variant::Delta).proxy;
    for number in 0..3 * TYPE_LIMIT {
        let type_url = format!("type.googleapis.com/{number}");
        proxy.stop_storing(Duration::ZERO, &type_url, RESOURCES, &mut Vec::new());
        assert!(proxy.not_stored_reason(&type_url).is_some());
    }
    assert_eq!(proxy.not_stored.len(), TYPE_LIMIT);
}

/// Envoy accepts each response, so it holds as much itself.
#[test]
fn a_flood_of_resources_is_passed_on_but_not_kept() {
    let mut tested = configured(Variant::Delta);
    let mut logged = 0;
    for round in 0..12 {
        tested.step(Input::UpstreamResponse(many(round * 10_000, 10_000, "n")));
        logged += events(&tested);
        verdict(&mut tested, CLUSTER, None);
        logged += events(&tested);
        assert_eq!(tested.sent()[0].nonce, "n", "round {round}");
        assert!(names_size(&tested) <= NAMES_SIZE);
    }
    assert_eq!((logged, tested.not_stored()), (1, vec!["more than 100,000 resources"]));
    assert!(names_size(&tested) < MIB);
    assert_eq!(tested.stored().0.keys().collect::<Vec<_>>(), [EDS]);
    // Only Envoy knows what it holds, so it must say so to the next server.
    tested.lose_upstream();
    tested.open_upstream();
    assert!(is_disconnected(&tested) && tested.sent().is_empty());
}

#[test]
fn a_response_with_too_many_resources_is_passed_on_unread() {
    for variant in BOTH {
        let mut tested = configured(variant);
        let message: Bytes = match variant {
            Variant::Delta => many(0, ITEM_LIMIT + 1, "n3"),
            Variant::Sotw => {
                let empty = (0..=ITEM_LIMIT).map(|_| ResourceRef { name: "", version: "", any: &[] });
                ResponseHead { type_url: CLUSTER, version: "c2", nonce: "n3" }.encode(variant, empty, [])
            }
        };
        tested.step(Input::UpstreamResponse(message.clone()));
        assert!(
            tested
                .effects
                .iter()
                .any(|effect| matches!(effect, Effect::SendEnvoy(sent, _) if *sent == message))
        );
        let state = &tested.proxy.downstream.as_ref().unwrap().types[0];
        assert!(state.in_flight[0].content.resources.is_empty());
        verdict(&mut tested, CLUSTER, None);
        assert_eq!(tested.sent()[0].nonce, "n3");
        assert_eq!(tested.not_stored(), ["more than 100,000 resources"], "{variant:?}");
        assert_eq!(tested.stored().0.keys().collect::<Vec<_>>(), [EDS]);
    }
}

/// Removed names count too, whether Envoy accepts or rejects the responses.
#[test]
fn a_flood_of_removed_names_is_bounded() {
    for error in [None, Some(&b"\x12\x03bad"[..])] {
        let mut tested = configured(Variant::Delta);
        for round in 0..40 {
            let names = (0..90).map(|number| format!("{round} {number} {}", "x".repeat(20_000)));
            let response =
                ResponseHead { type_url: CLUSTER, version: "v", nonce: "n" }.encode(Variant::Delta, [], []);
            tested.step(Input::UpstreamResponse(with_removed(&response, names)));
            assert!(tested.proxy.reads_upstream(), "Envoy has acknowledged the responses before");
            verdict(&mut tested, CLUSTER, error);
            assert!(!is_disconnected(&tested) && tested.sent()[0].nonce == "n");
            assert!(names_size(&tested) <= NAMES_SIZE, "{error:?}: {}", names_size(&tested));
        }
        assert_eq!(tested.not_stored().is_empty(), error.is_none());
    }
    let mut tested = configured(Variant::Delta);
    let response =
        ResponseHead { type_url: CLUSTER, version: "v", nonce: "n" }.encode(Variant::Delta, [], []);
    tested.step(Input::UpstreamResponse(with_removed(&response, (0..=ITEM_LIMIT).map(|_| String::new()))));
    let state = &tested.proxy.downstream.as_ref().unwrap().types[0];
    assert!(state.in_flight[0].content.removed.is_empty());
}

/// Without its names, the proxy could not repeat the subscription to another server.
#[test]
fn an_envoy_with_too_many_names_is_disconnected() {
    for long in [false, true] {
        let mut tested = configured(Variant::Delta);
        let mut rounds = 0;
        while !is_disconnected(&tested) {
            rounds += 1;
            assert!(rounds < 100, "no limit");
            let padding = if long { "x".repeat(2000) } else { String::new() };
            let names: Vec<String> = (0..2000).map(|number| format!("{rounds}.{number}{padding}")).collect();
            let mut more = request(Variant::Delta, EDS, &[], "", "");
            more.subscription = Request::subscription_to(names.iter().map(String::as_str));
            tested.step(Input::EnvoyRequest(more.encode(Variant::Delta)));
        }
        assert_eq!(rounds, if long { NAMES_SIZE / (2000 * 2056) + 1 } else { ITEM_LIMIT / 2000 });
    }
    for variant in BOTH {
        let mut tested = configured(variant);
        let mut more = request(variant, ROUTE, &[], "", "");
        more.subscription = Request::subscription_to((0..=ITEM_LIMIT).map(|_| "x"));
        tested.step(Input::EnvoyRequest(more.encode(variant)));
        assert!(is_disconnected(&tested), "{variant:?}");
    }
}

#[test]
fn a_copy_for_a_write_keeps_its_state() {
    let mut tested = configured(Variant::Sotw);
    let copy: LastGood = tested.proxy.last_good();
    tested.accepted(EDS, &["a"], &[("a", "2")], "e2", "n3");
    assert_eq!((&*copy.0[EDS].version, &*tested.proxy.last_good().0[EDS].version), ("e1", "e2"));
    assert!(Arc::ptr_eq(&copy.0[CLUSTER], &tested.proxy.last_good().0[CLUSTER]));
}

/// What changes during a write is not in its result.
#[test]
fn the_result_of_a_write_replaces_only_what_is_the_same() {
    for variant in BOTH {
        let mut tested = configured(variant);
        let packed = tested.proxy.last_good().packed();
        tested.accepted(EDS, &["a"], &[("a", "2")], "e2", "n3");
        let before = tested.proxy.last_good();
        tested.step(Input::Stored { packed: packed.clone(), result: Ok(()) });
        let after = tested.proxy.last_good();
        assert_eq!(after, before);
        for of_type in [CLUSTER, EDS] {
            assert_eq!(after.0[of_type].resources(), before.0[of_type].resources(), "{of_type}");
        }
        assert_eq!(resource(&after, EDS, "a").any, any("a", "2"));
    }
}

#[test]
fn without_a_cache_no_content_is_kept() {
    for variant in BOTH {
        let mut tested = configure(Tested::without_cache(variant));
        let good = tested.proxy.last_good();
        assert_eq!((good.0[EDS].len(), good.0[EDS].resources().len()), (1, 0));
        // What the control plane repeats is recognized nevertheless.
        tested.lose_upstream();
        tested.open_upstream();
        tested.server(EDS, &[("a", "1")], "e1", "n3");
        assert!(tested.delivered().is_empty(), "{variant:?}");
    }
}
