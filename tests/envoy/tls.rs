//! Tests of `httpGet` probes over TLS through a real Envoy: no certificate is verified, and every
//! TLS variant that kubelet supports works.

use kit::app::grpc::GrpcAnswer;
use kit::app::tls::{ClientCertificate, Key, Tls, Versions};
use kit::app::{Step, answer};
use kit::envoy::Version;

use crate::e2e::{Listens, Row, check, check_with, http_get, https_get};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn over(name: &'static str, tls: Tls, status: u16, word: &'static str) -> Row {
    Row { name, app: Listens::OverTls(tls, answer(OK)), prober: https_get(), status, word }
}

fn plain(name: &'static str, steps: Vec<Step>, status: u16, word: &'static str) -> Row {
    Row { name, app: Listens::Plain(steps), prober: https_get(), status, word }
}

/// A row with an application that serves HTTP/2, with a body and trailers.
fn h2(name: &'static str, alpn: &[&str], status: u16) -> Row {
    let answer = GrpcAnswer {
        status,
        headers: vec![("content-type", "text/plain"), ("set-cookie", "secret")],
        body: b"secret".to_vec(),
        trailers: vec![("x-trailer", "secret")],
    };
    let tls = Tls::with_alpn(alpn);
    Row { name, app: Listens::Grpc(Some(tls), answer), prober: https_get(), status, word: "" }
}

fn rows() -> Vec<Row> {
    let default = Tls::default;
    let unavailable = answer("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
    vec![
        over("self-signed", default(), 200, ""),
        over("expired", Tls { expired: true, ..default() }, 200, ""),
        over("other-name", Tls { name: "other.example.org".into(), ..default() }, 200, ""),
        over("rsa", Tls { key: Key::Rsa, ..default() }, 200, ""),
        over("ed25519", Tls { key: Key::Ed25519, ..default() }, 200, ""),
        over(
            "asks-for-certificate",
            Tls { client_certificate: ClientCertificate::Asked, ..default() },
            200,
            "",
        ),
        over("alpn-http-1-1", Tls::with_alpn(&["http/1.1"]), 200, ""),
        over("only-1-2", Tls { versions: Versions::Only12, ..default() }, 200, ""),
        over("only-1-3", Tls { versions: Versions::Only13, ..default() }, 200, ""),
        Row {
            name: "application",
            app: Listens::OverTls(default(), unavailable),
            prober: https_get(),
            status: 503,
            word: "",
        },
        h2("alpn-h2", &["h2", "http/1.1"], 200),
        h2("only-h2", &["h2"], 200),
        h2("h2-failure", &["h2"], 503),
        // A server that supports none of the offered ALPN protocols aborts the handshake, as it
        // does with the kubelet's client.
        over("alpn-unknown", Tls::with_alpn(&["spdy/1"]), 525, "tls"),
        Row {
            name: "tls-on-plaintext-port",
            app: Listens::OverTls(default(), answer(OK)),
            prober: http_get(),
            status: 527,
            word: "protocol",
        },
        Row { name: "refused", app: Listens::Closed, prober: https_get(), status: 502, word: "refused" },
        // An HTTP server answers a ClientHello in plaintext with 400.
        plain("plaintext", vec![Step::Write(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())], 525, "tls"),
        plain("handshake-hangs", vec![Step::Hang], 504, "timeout"),
    ]
}

#[tokio::test]
async fn tls() {
    check("tls", rows()).await;
}

#[tokio::test]
async fn tls_on_the_oldest_envoy() {
    check_with("tls-floor", Version::Floor, rows()).await;
}
