//! Feeds arbitrary requests to an ADS stream: malformed ones end only that stream.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use ::discovery::entries::{Settings, Timestamp};
use ::discovery::message::{TypeUrl, Variant};
use ::discovery::objects::{Config, ExportTo, Key, LastEndpoint, Port, Protocol, Service, Source, Spec};
use ::discovery::snapshot::{Snapshot, SnapshotSettings};
use ::discovery::stream::{AdsStream, Effect, Input};
use ::discovery::wire;

/// Maximum number of requests per input.
const STEPS: usize = 64;

/// Returns a snapshot with one service that has this many endpoints.
fn snapshot(endpoints: u8) -> Snapshot {
    let spec = |number| Spec { address: format!("10.0.0.{number}"), ..Spec::default() };
    let key = Key::new("shop", "pay");
    let service = Service {
        key: key.clone(),
        hosts: vec!["pay".to_owned()],
        ports: vec![Port {
            number: 80,
            name: "http".to_owned(),
            protocol: Protocol::Http,
            target_port: None,
        }],
        source: Source::Inline((0..endpoints).map(|endpoint| spec(endpoint).into()).collect()),
        export_to: ExportTo::All,
        created: None,
        last_endpoint: None,
    };
    let services = BTreeMap::from([(key, Arc::new(service))]);
    let config = Config { services, ..Config::default() };
    let settings = SnapshotSettings {
        last_endpoint: LastEndpoint::Remove,
        startup_grace: endpoints % 2 == 1,
        outbound_listeners: (endpoints > 1).then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        removal_limits: Settings::default().removal_limits(),
        now: Timestamp::default(),
    };
    Snapshot::build(&config, &mut std::iter::empty(), settings, None)
}

/// Feeds requests to an ADS stream. The first byte selects the protocol variant; each request
/// follows as its length in two bytes and its content. Between requests, time advances and the
/// snapshot changes. Nonces must be unique, no response may follow an unacknowledged one of the
/// same type, and all responses must be encodable.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn discovery_request(bytes: &[u8]) {
    thread_local!(static SNAPSHOTS: [Snapshot; 4] = [0, 1, 2, 3].map(snapshot));
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let variant = if first % 2 == 0 { Variant::Sotw } else { Variant::Delta };
    let mut stream = AdsStream::new(variant, None);
    let (mut nonces, mut unanswered) = (BTreeSet::new(), BTreeMap::new());
    for step in 0..STEPS {
        let Some((length, after)) = rest.split_at_checked(2) else { return };
        let length = usize::from(u16::from_be_bytes([length[0], length[1]])).min(after.len());
        let (message, after) = after.split_at(length);
        rest = after;
        // A malformed request ends the stream.
        let Ok(request) = wire::decode(Bytes::copy_from_slice(message), variant) else { return };
        unanswered.retain(|_: &TypeUrl, nonce: &mut String| *nonce != request.nonce);
        let inputs = [Input::Request(Box::new(request)), Input::Poll];
        for (index, input) in inputs.into_iter().enumerate() {
            let now = Duration::from_millis(60 * (2 * step + index) as u64);
            let effects = SNAPSHOTS.with(|snapshots| stream.step(now, input, &snapshots[(step + index) % 4]));
            for effect in effects {
                match effect {
                    Effect::Close(..) => return,
                    Effect::Send(response) => {
                        assert!(nonces.insert(response.nonce.clone()), "duplicate nonce");
                        let before = unanswered.insert(response.type_url.clone(), response.nonce.clone());
                        assert_eq!(before, None, "a second response in flight");
                        wire::encode(response, variant, &mut BytesMut::new());
                    }
                    _ => {}
                }
            }
        }
    }
}
