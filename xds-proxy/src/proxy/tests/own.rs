//! Resources of the agent itself, which Envoy never sees.

use xds::type_url::LISTENER;

use super::super::*;
use super::support::{BOTH, HOUR, OWN, Tested};

/// The resource that the last step hands to the agent.
fn received(tested: &Tested) -> Option<OwnResource> {
    tested.effects.iter().find_map(|effect| match effect {
        Effect::Own(resource) => Some(resource.clone()),
        _ => None,
    })
}

/// An Envoy that has asked for listeners, and the answer to the agent's own request.
fn subscribed(variant: Variant) -> (Tested, OwnResource) {
    let mut tested = Tested::subscribing(variant, None);
    tested.open();
    assert_eq!(tested.sent().len(), 0, "the control plane must know Envoy's node first");
    tested.envoy(LISTENER, &[], "", "");
    let sent = tested.sent();
    assert_eq!(sent.iter().map(|request| request.type_url.as_str()).collect::<Vec<_>>(), [LISTENER, OWN]);
    assert!(sent[0].node.is_some() && sent[1].node.is_none());
    tested.server(OWN, &[("", "names")], "o1", "n1");
    assert_eq!(tested.delivered().len(), 0, "not a resource of Envoy");
    let resource = received(&tested).expect("a resource");
    (tested, resource)
}

#[test]
fn own_resources_are_requested_and_acknowledged() {
    for variant in BOTH {
        let (mut tested, resource) = subscribed(variant);
        tested.step(Input::OwnChecked { resource, result: Ok(()) });
        let sent = tested.sent();
        assert_eq!((sent[0].type_url.as_str(), sent[0].nonce.as_str()), (OWN, "n1"));
        assert_eq!(sent[0].error_text().unwrap(), None);
        // Another request for listeners asks for nothing more.
        tested.envoy(LISTENER, &[], "", "");
        assert!(tested.sent().iter().all(|request| request.type_url != OWN));
    }
}

#[test]
fn refused_resources_are_not_acknowledged_and_not_stored() {
    for variant in BOTH {
        let (mut tested, resource) = subscribed(variant);
        tested.step(Input::OwnChecked { resource, result: Err("damaged".to_owned()) });
        assert_eq!(tested.sent()[0].error_text().unwrap().as_deref(), Some("damaged"));
        assert_eq!(tested.proxy.stored_own(OWN), None);
    }
}

#[test]
fn own_resources_survive_a_restart() {
    for variant in BOTH {
        let (mut tested, resource) = subscribed(variant);
        let content = xds::parse_any(&resource.any).unwrap().1;
        tested.step(Input::OwnChecked { resource, result: Ok(()) });
        let restarted = Tested::subscribing(variant, Some((tested.stored(), HOUR)));
        assert_eq!(restarted.proxy.stored_own(OWN), Some(content));
    }
}

#[test]
fn a_new_stream_requests_them_again_and_answers_nothing_of_the_old_one() {
    for variant in BOTH {
        let (mut tested, resource) = subscribed(variant);
        tested.lose_upstream();
        tested.open_upstream();
        assert!(tested.sent().iter().any(|request| request.type_url == OWN && request.nonce.is_empty()));
        tested.step(Input::OwnChecked { resource, result: Ok(()) });
        assert_eq!(tested.sent().len(), 0);
        assert!(tested.proxy.stored_own(OWN).is_some());
    }
}
