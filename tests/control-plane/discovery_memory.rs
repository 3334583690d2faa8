//! Tests clients that send as much as they can: each one costs a bounded amount of memory, and ends
//! at most its own stream.

use std::time::Duration;

use kit::wait;
use tokio::time::sleep;
use tonic::Code;
use xds::Variant;
use xds::type_url::{LISTENER, ROUTE};

use crate::discovery_support::{
    CLIENT, Discovery, EDS, Peer, client, has_machine, health, reporter, request,
};

/// Uses a separate account and address for each stream, so that no per-peer limit applies.
async fn open(discovery: &Discovery, number: usize, metadata: &[(&str, &str)]) -> Peer {
    let uri = format!("spiffe://cluster.local/ns/shop/sa/greedy-{number}");
    let last = u8::try_from(number + 1).expect("few");
    let first = request(EDS, &[], metadata);
    let opened =
        Peer::open_from([127, 9, 3, last], discovery.secure, discovery.identity(&uri), Variant::Sotw, first)
            .await;
    opened.expect("a stream")
}

/// Returns how many KiB of memory `greedy` costs while reports of another agent are still
/// delivered.
async fn cost<T>(name: &str, greedy: impl AsyncFnOnce(&Discovery) -> T) -> u64 {
    let discovery = Discovery::start(name, &["--accept-rate", "2000"]);
    let (mut client, reporter) = (client(&discovery).await, reporter(&discovery).await);
    let mut flip = async |text: &str| {
        reporter.send(health(text)).await;
        client.assignment(|bytes| has_machine(bytes) == text.is_empty()).await;
    };
    flip("").await;
    let before = discovery.memory();
    let peers = greedy(&discovery).await;
    flip("HTTP status 503").await;
    sleep(Duration::from_secs(1)).await;
    let after = discovery.memory();
    drop(peers);
    flip("").await;
    after.saturating_sub(before)
}

#[tokio::test]
async fn large_messages() {
    const PEERS: usize = 8;
    let each = cost("messages", async |discovery| {
        let name = "n".repeat((4 << 20) - 1000);
        let mut peers = Vec::new();
        // The Envoy of the plain reporter has sent one.
        let mut sent = 1;
        for number in 0..PEERS {
            let peer = open(discovery, number, &CLIENT).await;
            for type_url in [LISTENER, ROUTE] {
                peer.send(request(type_url, &[&name], &[])).await;
                sent += 1;
                // Messages that are received in part share 8 MiB, so one is sent at a time.
                let expected = format!("unknown_type_requests_total {sent}\n");
                wait::until("the message is counted", async || {
                    discovery.page("/metrics").contains(&expected)
                })
                .await;
            }
            peers.push(peer);
        }
        peers
    });
    let each = each.await / u64::try_from(PEERS).expect("few");
    assert!(each < 2 << 10, "{each} KiB for each");
}

#[tokio::test]
async fn large_metadata() {
    const PEERS: usize = 100;
    let each = cost("metadata", async |discovery| {
        let text = "m".repeat(63 << 10);
        let metadata = [("NAMESPACE", "shop"), ("EXTRA", text.as_str())];
        let mut peers = Vec::new();
        for number in 0..PEERS {
            peers.push(open(discovery, number, &metadata).await);
        }
        peers
    });
    let each = each.await / u64::try_from(PEERS).expect("few");
    assert!(each < 256, "{each} KiB for each");
}

#[tokio::test]
async fn many_types() {
    let cost = cost("types", async |discovery| {
        for number in 0..5 {
            let mut peer = open(discovery, number, &CLIENT).await;
            for number in 0..33 {
                let type_url = format!("{number}{}", "t".repeat(64 << 10));
                let _ = peer.try_send(request(&type_url, &[], &[])).await;
            }
            let status = loop {
                if let Err(status) = peer.next().await {
                    break status;
                }
            };
            let expected = (Code::InvalidArgument, "type_url: more than 32 types that are not served");
            assert_eq!((status.code(), status.message()), expected);
        }
    });
    let cost = cost.await;
    assert!(cost < 32 << 10, "{cost} KiB");
}

#[tokio::test]
async fn many_names() {
    const PEERS: usize = 2;
    let each = cost("names", async |discovery| {
        let names: Vec<String> = (0..4097).map(|number| format!("outbound|80||{number}.none")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut peers = Vec::new();
        for number in 0..PEERS {
            let mut peer = open(discovery, number, &CLIENT).await;
            peer.send(request(EDS, &names[1..], &[])).await;
            let answer = peer.next().await.expect("an answer");
            assert_eq!(answer.resources.len(), names.len() - 1);
            peers.push(peer);
        }
        for (number, names, text) in [
            (PEERS, names, "resource_names: more than 4096 names do not exist"),
            (PEERS + 1, vec!["outbound|80||pay.shop"; 65_537], "resource_names: more than 65536 names"),
        ] {
            let mut peer = open(discovery, number, &CLIENT).await;
            peer.send(request(EDS, &names, &[])).await;
            let status = peer.next().await.expect_err("an end");
            assert_eq!((status.code(), status.message()), (Code::InvalidArgument, text));
        }
        peers
    });
    let each = each.await / u64::try_from(PEERS).expect("few");
    assert!(each < 8 << 10, "{each} KiB for each");
}
