//! WebAssembly from other machines, which Envoy must not get.

use bytes::{Bytes, BytesMut};
use xds::{ResourceRef, ResponseHead, put_bytes};

use super::super::*;
use super::support::{BOTH, Tested};

const EXTENSION: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
const HTTP: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
const NETWORK: &str = "type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm";
const RBAC: &str = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC";

fn message(number: u64, content: &[u8]) -> Bytes {
    let mut to = BytesMut::new();
    put_bytes(&mut to, number, content);
    to.freeze()
}

/// An extension of this type, whose code is in this field: 1 is local, 2 remote.
fn extension(type_url: &str, code: u64) -> Bytes {
    let source = message(code, b"source");
    let filter = message(1, &message(3, &message(3, &source)));
    let config = xds::any(type_url, &filter);
    xds::any(EXTENSION, &[message(1, b"shop.auth"), message(2, &config)].concat())
}

fn send(tested: &mut Tested, any: &Bytes, nonce: &str) {
    let head = ResponseHead { type_url: EXTENSION, version: "1", nonce };
    let resource = ResourceRef { name: "shop.auth", version: "1", any };
    let response = head.encode(tested.variant, [resource], []);
    tested.step(Input::UpstreamResponse(response));
}

#[test]
fn remote_code_is_refused_and_named() {
    for variant in BOTH {
        for type_url in [HTTP, NETWORK] {
            let mut tested = Tested::refusing(variant);
            tested.open();
            tested.envoy(EXTENSION, &["shop.auth"], "", "");
            send(&mut tested, &extension(type_url, 2), "n1");
            assert_eq!(tested.delivered().len(), 0);
            let sent = tested.sent();
            assert_eq!((sent[0].type_url.as_str(), sent[0].nonce.as_str()), (EXTENSION, "n1"));
            let text = sent[0].error_text().unwrap().unwrap();
            assert!(text.starts_with("shop.auth: this agent does not load WebAssembly"), "{text}");
            let refused = |effect: &Effect| matches!(effect, Effect::Event(Event::Refused { .. }));
            assert!(tested.effects.iter().any(refused));
            assert_eq!(tested.proxy.view(tested.now).types[0].nacks, 1);
            // The same response again is refused, and told once.
            send(&mut tested, &extension(type_url, 2), "n2");
            assert!(tested.sent()[0].error.is_some() && !tested.effects.iter().any(refused));
            // A plugin that is replaced by a usable one arrives.
            send(&mut tested, &extension(type_url, 1), "n3");
            assert_eq!(tested.delivered().len(), 1);
        }
    }
}

#[test]
fn other_extensions_are_passed_on() {
    for variant in BOTH {
        for any in [extension(HTTP, 1), extension(RBAC, 2), xds::any(EXTENSION, b"\x08"), Bytes::new()] {
            let mut tested = Tested::refusing(variant);
            tested.open();
            tested.envoy(EXTENSION, &["shop.auth"], "", "");
            send(&mut tested, &any, "n1");
            assert_eq!(tested.delivered().len(), 1, "{any:?}");
        }
        let mut tested = Tested::new(variant);
        tested.open();
        tested.envoy(EXTENSION, &["shop.auth"], "", "");
        send(&mut tested, &extension(HTTP, 2), "n1");
        assert_eq!(tested.delivered().len(), 1, "not an agent in the place of Istio's");
    }
}
