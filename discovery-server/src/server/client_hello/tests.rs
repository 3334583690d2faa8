use tokio::io::{AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep};

use super::*;

/// Returns after how many seconds a client that sends `words` and nothing more is disconnected, up
/// to `most`.
async fn waited(words: &[u8], is_scarce: impl Fn(Instant) -> bool, most: u64) -> u64 {
    let (mut client, server) = duplex(1024);
    client.write_all(words).await.expect("room");
    let start = Instant::now();
    let hello = read_client_hello(server, || is_scarce(start));
    let ended = timeout(Duration::from_secs(most), hello).await;
    assert!(ended.is_err() || ended.is_ok_and(|hello| hello.is_err()), "no ClientHello was sent");
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn late_client_hello_times_out_when_permits_are_scarce() {
    // The rows are: nothing, the first byte of a record header, and an incomplete ClientHello.
    for words in [&[][..], &[22], &[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3]] {
        assert_eq!(waited(words, |_| true, 60).await, 1, "{words:?}");
        assert_eq!(waited(words, |_| false, 60).await, 60, "{words:?}");
        let later = |start: Instant| start.elapsed() > Duration::from_millis(2500);
        assert_eq!(waited(words, later, 60).await, 3, "{words:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_client_hello_is_accepted_while_permits_are_free() {
    let (client, server) = duplex(16 << 10);
    let roots = rustls::RootCertStore::empty();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("the provider has suites")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = async move {
        sleep(Duration::from_millis(3500)).await;
        let name = "discovery".try_into().expect("a name");
        // The server never answers.
        let _ = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, client).await;
    };
    let hello = read_client_hello(server, || false);
    tokio::select! {
        hello = hello => drop(hello.expect("a ClientHello")),
        () = client => panic!("the server does not answer"),
    }
}
