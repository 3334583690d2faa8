//! Generates TLS settings, bytes that are not a response, and ports that do not respond.

use proptest::prelude::*;
use proptest::sample::select;

use crate::bytes::Bytes;
use crate::case::{App, Listens, Step};
use kit::app::tls::{ClientCertificate, Key, Tls, Versions};

/// Generates TLS settings with these ALPN protocols, or without any if HTTP/2 is not among them.
pub(super) fn tls(alpn: &'static [&'static str]) -> impl Strategy<Value = Tls> {
    let http2 = alpn.contains(&"h2");
    let alpn: Vec<String> = alpn.iter().map(ToString::to_string).collect();
    let alpn = if http2 { Just(alpn).boxed() } else { select(vec![alpn, Vec::new()]).boxed() };
    let client = prop_oneof![
        8 => Just(ClientCertificate::No),
        2 => Just(ClientCertificate::Asked),
        1 => Just(ClientCertificate::Needed),
    ];
    let versions = select(&[Versions::Both, Versions::Both, Versions::Only12, Versions::Only13][..]);
    let key = select(&[Key::P256, Key::P256, Key::P384, Key::P521, Key::Rsa, Key::Ed25519][..]);
    (key, versions, client, prop::bool::weighted(0.1), prop::bool::weighted(0.05), alpn).prop_map(
        |(key, versions, client_certificate, expired, no_signature, alpn)| Tls {
            name: "app.example.com".into(),
            expired,
            key,
            no_signature: no_signature && key != Key::Ed25519,
            client_certificate,
            alpn,
            versions,
        },
    )
}

/// Generates bytes that are not a response, sent before or after the request.
pub(super) fn noise() -> impl Strategy<Value = Vec<Step>> {
    let noise = prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(b"220 ready\r\n".to_vec()),
        Just(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec()),
        // These are the TLS alerts `protocol_version`, `handshake_failure` and `internal_error`.
        select(&[70_u8, 40, 80][..]).prop_map(|alert| vec![21, 3, 1, 0, 2, 2, alert]),
    ];
    let end = prop_oneof![
        6 => Just(None),
        2 => Just(Some(Step::Reset)),
        2 => Just(Some(Step::Close)),
        1 => Just(Some(Step::Hang)),
    ];
    (any::<bool>(), noise, end).prop_map(|(takes, noise, end)| {
        let mut steps = Vec::new();
        if takes {
            steps.push(Step::Take(4096));
        }
        if !noise.is_empty() {
            steps.push(Step::Write(Bytes(noise)));
        }
        steps.extend(end);
        steps
    })
}

/// Generates a port that accepts no connection or never responds.
pub(super) fn unresponsive() -> impl Strategy<Value = App> {
    select(&[Listens::Not, Listens::Not, Listens::NeverAccepts][..])
        .prop_map(|listens| App { listens, ..App::default() })
}
