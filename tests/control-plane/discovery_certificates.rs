//! Tests reloading and expiry of server and client certificates while streams are open.

use std::time::Duration;

use kit::wait;
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};
use tonic::Code;

use crate::discovery_support::{
    CLIENT, Discovery, EDS, GATEWAY, MACHINE, NAME, PAY, PAYMENTS, Peer, client, has_machine, health,
    reporter, request,
};
use crate::webhook_support::{self, Ca};

/// Longer than the interval at which files are checked.
const POLLED: Duration = Duration::from_secs(6);

#[tokio::test]
async fn reloaded_certificates_apply_to_new_connections_only() {
    let discovery = Discovery::start("reload", &[]);
    let mut client = client(&discovery).await;
    client.assignment(|_| true).await;
    let reporter = reporter(&discovery).await;
    let old = discovery.trusting(Some(&discovery.ca.sign_uri(GATEWAY, None)));
    let next = Ca::new("the next one");
    // A file that cannot be used changes nothing.
    std::fs::write(discovery.folder.join("ca.crt"), "no PEM").expect("a file");
    sleep(POLLED).await;
    let first = || request(EDS, &[PAY], &CLIENT);
    Peer::open(discovery.secure, old.clone(), first()).await.expect("the previous CA is still accepted");
    std::fs::write(discovery.folder.join("ca.crt"), &next.pem).expect("a file");
    let new = discovery.trusting(Some(&next.sign_uri(GATEWAY, None)));
    let is_served = async || match Peer::open(discovery.secure, new.clone(), first()).await {
        Ok(mut peer) => peer.next().await.is_ok(),
        Err(_) => false,
    };
    wait::until_or(|| format!("the next CA is accepted: {}", discovery.log()), is_served).await;
    // No report is lost during the reload.
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
}

/// Returns whether a server with a certificate of this CA opens a stream for this account, which is
/// not used elsewhere.
async fn accepts_client(discovery: &Discovery, server: &Ca, account: &str) -> bool {
    let uri = format!("spiffe://cluster.local/ns/shop/sa/{account}");
    let tls = webhook_support::client(&server.pem, Some(&discovery.ca.sign_uri(&uri, None)));
    match Peer::open(discovery.secure, tls, request(EDS, &[PAY], &CLIENT)).await {
        Err(_) => false,
        Ok(mut peer) => peer.next().await.is_ok(),
    }
}

#[tokio::test]
async fn no_report_is_lost_when_the_server_certificate_changes() {
    let discovery = Discovery::start("pair", &[]);
    let (mut client, reporter) = (client(&discovery).await, reporter(&discovery).await);
    let next = Ca::new("the next one");
    let pair = next.sign("discovery", &[NAME]);
    let flips = async {
        let mut flips = 0;
        let end = Instant::now() + 4 * POLLED;
        while Instant::now() < end {
            for text in ["", "HTTP status 503"] {
                reporter.send(health(text)).await;
                client.assignment(|bytes| has_machine(bytes) == text.is_empty()).await;
                sleep(Duration::from_millis(300)).await;
            }
            flips += 1;
        }
        flips
    };
    let swap = async {
        // A certificate without its key cannot be used, so the previous pair stays in use.
        std::fs::write(discovery.folder.join("tls.crt"), &pair.0).expect("a file");
        sleep(POLLED).await;
        assert!(accepts_client(&discovery, &discovery.ca, "old").await, "{}", discovery.log());
        assert!(!accepts_client(&discovery, &next, "early").await);
        webhook_support::write_pair(&discovery.folder, &pair);
        let is_accepted = async || accepts_client(&discovery, &next, "new").await;
        wait::until_or(|| format!("the next certificate is served: {}", discovery.log()), is_accepted).await;
        assert!(!accepts_client(&discovery, &discovery.ca, "late").await);
    };
    let (flips, ()) = tokio::join!(flips, swap);
    assert!(flips > 5, "{flips}");
    let metrics = discovery.page("/metrics");
    assert!(metrics.contains("tls_reloads_total{result=\"success\"} 1"), "{metrics}");
}

#[tokio::test]
async fn an_expired_client_certificate_ends_the_stream_at_its_next_message() {
    let discovery = Discovery::start("expires", &["--disconnect-grace", "300s"]);
    let mut client = client(&discovery).await;
    let until = OffsetDateTime::now_utc() + time::Duration::seconds(5);
    let own = discovery.ca.sign_uri(PAYMENTS, Some(until));
    let first = request(EDS, &[], &MACHINE);
    let mut reporter =
        Peer::open(discovery.secure, discovery.trusting(Some(&own)), first).await.expect("a peer");
    reporter.send(health("")).await;
    let before = client.assignment(has_machine).await;
    while OffsetDateTime::now_utc() < until + time::Duration::seconds(2) {
        assert!(reporter.is_quiet().await, "nothing is sent");
    }
    reporter.send(health("injected")).await;
    let status = reporter.next().await.expect_err("an end");
    assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "client certificate: expired"));
    assert!(client.is_quiet().await, "no push is sent");
    drop(client);
    let gateway = discovery.identity(GATEWAY);
    let mut again =
        Peer::open(discovery.secure, gateway, request(EDS, &[PAY], &CLIENT)).await.expect("a client");
    assert_eq!(again.assignment(|_| true).await, before);
}
