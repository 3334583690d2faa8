//! Tests clients that do not read.

use std::time::Duration;

use kit::wait;
use tokio::time::{Instant, sleep};
use xds::Request;

use crate::discovery_frames::Frames;
use crate::discovery_support::{
    CDS, CLIENT, Discovery, EDS, GATEWAY, PAY, Peer, acknowledgement, client, has_machine, health, node,
    reporter, request,
};

/// An assignment that is larger than a window of 64 KiB.
const LARGE: &str = "outbound|80||large.shop";
/// Number of readers that stop in the same way.
const READERS: usize = 8;
/// Time after which such a client is disconnected.
const BLOCKED: Duration = Duration::from_secs(30);
/// How long before and after that a client is observed.
const MARGIN: Duration = Duration::from_secs(5);

/// Returns a ServiceEntry with 4000 endpoints.
fn large() -> String {
    let mut text = "apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: large, namespace: shop }
spec:
  hosts: [ large.shop ]
  resolution: STATIC
  ports: [ { number: 80, name: http, protocol: HTTP } ]
  endpoints:
"
    .to_owned();
    for number in 0..4000 {
        text.push_str(&format!("  - {{ address: 10.9.{}.{} }}\n", number / 250, number % 250));
    }
    text
}

fn first(id: &str, names: &[&str]) -> Request {
    Request { node: Some(node(id, &CLIENT)), ..request(EDS, names, &[]) }
}

/// Starts discovery with the large service.
async fn discovery(name: &str) -> Discovery {
    let discovery = Discovery::start(name, &["--plaintext-listen", "127.0.0.1:0"]);
    std::fs::write(discovery.folder.join("mesh/large.yaml"), large()).expect("a file");
    let clusters = request(CDS, &[], &CLIENT);
    let mut peer =
        Peer::open(discovery.secure, discovery.identity(GATEWAY), clusters).await.expect("a client");
    loop {
        let clusters = peer.next().await.expect("clusters");
        if clusters.resources.len() == 2 {
            break;
        }
        peer.send(acknowledgement(&clusters)).await;
    }
    discovery
}

/// Returns for how many milliseconds each client of this node ID has been blocked, according to
/// /debug.
fn blocked(discovery: &Discovery, node: &str) -> Vec<u64> {
    let view: serde_json::Value = serde_json::from_str(&discovery.page("/debug/workloads")).expect("JSON");
    let clients = view["clients"].as_array().expect("clients").iter();
    let of_node = clients.filter(|client| client["node"] == node);
    of_node.map(|client| client["blockedMs"].as_u64().expect("a number")).collect()
}

/// Opens readers with this window, and checks that they are disconnected without having received
/// more than that.
async fn check(discovery: &Discovery, node: &str, names: &[&str], window: u32) {
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(Frames::open(discovery.plaintext(), window, &first(node, names)).await);
    }
    let opened = Instant::now();
    let tasks: Vec<_> = readers
        .into_iter()
        .map(|mut reader| tokio::spawn(async move { reader.take(BLOCKED + wait::timeout(), None).await }))
        .collect();
    sleep(BLOCKED / 2).await;
    let shown = blocked(discovery, node);
    assert_eq!(shown.len(), READERS, "{node}");
    assert!(shown.iter().all(|blocked| *blocked > 5000), "{node}: {shown:?}");
    for task in tasks {
        let (taken, stands) = task.await.expect("a reader");
        assert!(!stands, "{node}: still connected");
        assert!(taken <= usize::try_from(window).expect("small"), "{node}: {taken} bytes");
    }
    assert!(opened.elapsed() >= BLOCKED, "{node}: too soon");
    assert!(blocked(discovery, node).is_empty(), "{node}: still listed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_are_disconnected_without_affecting_others() {
    let discovery = discovery("slow").await;
    let (mut client, reporter) = (client(&discovery).await, reporter(&discovery).await);
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
    // A client that reads a little every second is slow, but is not disconnected.
    let mut slow = Frames::open(discovery.plaintext(), 1000, &first("slow", &[LARGE])).await;
    let slow = tokio::spawn(async move { slow.take(BLOCKED + 2 * MARGIN, Some(1000)).await });
    // A client that does not answer pings is disconnected because of them, regardless of its
    // window.
    let deaf = Frames::open(discovery.plaintext(), 1 << 30, &first("deaf", &[LARGE])).await;
    let others = async {
        let mut most = 0;
        let mut before = 0;
        let mut updates = 0;
        let end = Instant::now() + BLOCKED - MARGIN;
        while Instant::now() < end {
            for text in ["HTTP status 503", ""] {
                reporter.send(health(text)).await;
                client.assignment(|bytes| has_machine(bytes) == text.is_empty()).await;
                updates += 1;
                sleep(Duration::from_millis(300)).await;
            }
            let memory = discovery.memory();
            before = if before == 0 { memory } else { before };
            most = most.max(memory);
        }
        assert!(updates > 2, "{updates} updates arrived while the readers were blocked");
        assert!(most < before + (12 << 10), "{before} KiB, then {most}");
    };
    tokio::join!(
        others,
        check(&discovery, "window", &[LARGE, PAY], 65_535),
        check(&discovery, "none", &[LARGE, PAY], 0),
        check(&discovery, "little", &[PAY], 40),
    );
    let (taken, stands) = slow.await.expect("a reader");
    assert!(stands && taken > 20_000, "{taken} bytes");
    assert!(blocked(&discovery, "deaf").is_empty(), "still connected");
    drop(deaf);
    let metrics = discovery.page("/metrics");
    let expected = format!("app_health_discovery_slow_readers_total {}", 3 * READERS);
    assert!(metrics.contains(&expected), "{metrics}");
}
