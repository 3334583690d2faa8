//! Tests discovery as a process over mutual TLS: identities, limits, and their effect on endpoints.

use time::OffsetDateTime;
use tonic::Code;
use xds::Variant;

use crate::discovery_support::{
    CDS, CLIENT, Discovery, EDS, GATEWAY, MACHINE, PAYMENTS, Peer, acknowledgement, client, has_machine,
    health, reporter, request,
};

#[tokio::test]
async fn a_report_is_processed_without_a_response() {
    let discovery = Discovery::start("plain", &[]);
    let mut client = client(&discovery).await;
    client.assignment(|bytes| !has_machine(bytes)).await;
    let mut reporter = reporter(&discovery).await;
    let listeners = reporter.next().await.expect("an empty set of listeners");
    assert!(listeners.resources.is_empty(), "{listeners:?}");
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
    reporter.send(health("HTTP status 503")).await;
    client.assignment(|bytes| !has_machine(bytes)).await;
    assert!(reporter.is_quiet().await, "neither a probe configuration nor an acknowledgement is sent");
    let view = discovery.page("/debug/workloads?group=payments");
    assert!(view.contains("\"status\":\"False\"") && view.contains("HTTP status 503"), "{view}");
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
}

#[tokio::test]
async fn reports_of_another_identity_are_rejected() {
    let discovery = Discovery::start("identity", &[]);
    let mut client = client(&discovery).await;
    let reporter = reporter(&discovery).await;
    reporter.send(health("")).await;
    let before = client.assignment(has_machine).await;
    let expired = discovery.ca.sign_uri(PAYMENTS, Some(OffsetDateTime::now_utc() - time::Duration::days(1)));
    let stranger = crate::webhook_support::Ca::new("untrusted CA");
    let rows = [
        (
            "another namespace",
            discovery.identity("spiffe://cluster.local/ns/other/sa/payments"),
            Code::PermissionDenied,
        ),
        (
            "another account",
            discovery.identity("spiffe://cluster.local/ns/shop/sa/orders"),
            Code::PermissionDenied,
        ),
        (
            "another trust domain",
            discovery.identity("spiffe://elsewhere/ns/shop/sa/payments"),
            Code::Unauthenticated,
        ),
        (
            "no identity",
            discovery.trusting(Some(&discovery.ca.sign("vm-7", &["vm-7"]))),
            Code::Unauthenticated,
        ),
        ("no certificate", discovery.trusting(None), Code::Unavailable),
        ("expired", discovery.trusting(Some(&expired)), Code::Unavailable),
        ("another CA", discovery.trusting(Some(&stranger.sign_uri(PAYMENTS, None))), Code::Unavailable),
    ];
    for (what, tls, expected) in rows {
        let first = request(EDS, &[], &MACHINE);
        let code = match Peer::open(discovery.secure, tls, first).await {
            Err(status) => status.code(),
            Ok(mut peer) => {
                // The stream may end before this request is sent.
                let _ = peer.try_send(health("injected")).await;
                peer.next().await.expect_err(what).code()
            }
        };
        // A failed client certificate check in TLS 1.3 appears at the first read, with a code of
        // the transport.
        let is_transport = expected == Code::Unavailable && matches!(code, Code::Unknown | Code::Cancelled);
        assert!(code == expected || is_transport, "{what}: {code:?}");
    }
    assert!(client.is_quiet().await, "no push is sent");
    drop(client);
    let mut again = crate::discovery_support::client(&discovery).await;
    assert_eq!(again.assignment(|_| true).await, before);
    drop(reporter);
}

#[tokio::test]
async fn exceeded_limits_end_only_the_stream() {
    let discovery = Discovery::start("limits", &[]);
    let mut client = client(&discovery).await;
    client.assignment(|_| true).await;
    let metadata = "x".repeat(70 << 10);
    let too_much = [("NAMESPACE", "shop"), ("EXTRA", metadata.as_str())];
    let name = "n".repeat(5 << 20);
    let rows = [
        ("metadata", request(EDS, &[], &too_much), Code::InvalidArgument, "node.metadata: more than 64 KiB"),
        ("message", request(EDS, &[&name], &CLIENT), Code::ResourceExhausted, "larger than 4 MiB"),
        ("no node", request(EDS, &[], &[]), Code::InvalidArgument, "node: must be set in the first request"),
    ];
    for (what, first, code, text) in rows {
        let mut peer = Peer::open(discovery.secure, discovery.identity(PAYMENTS), first).await.expect(what);
        let status = peer.next().await.expect_err(what);
        assert_eq!(status.code(), code, "{what}: {status}");
        assert!(status.message().contains(text), "{what}: {status}");
    }
    // Three of the five tokens of this peer have been used.
    let mut refused = None;
    let mut open = Vec::new();
    for _ in 0..6 {
        match Peer::open(discovery.secure, discovery.identity(PAYMENTS), request(EDS, &[], &CLIENT)).await {
            Ok(peer) => open.push(peer),
            Err(status) => refused = Some(status.code()),
        }
    }
    assert_eq!(refused, Some(Code::ResourceExhausted));
    assert!(client.is_quiet().await);
    let metrics = discovery.page("/metrics");
    assert!(metrics.contains("app_health_discovery_refused_total{reason=\"limit\"}"), "{metrics}");
}

#[tokio::test]
async fn a_nack_is_reported_and_affects_no_other_client() {
    let discovery = Discovery::start("nack", &[]);
    let first = request(CDS, &[], &CLIENT);
    let mut refuses =
        Peer::open(discovery.secure, discovery.identity(GATEWAY), first).await.expect("a client");
    let answer = refuses.next().await.expect("clusters");
    assert_eq!(answer.resources.len(), 1);
    let mut nack = health("no such extension");
    nack.type_url = CDS.to_owned();
    nack.nonce = answer.nonce.clone();
    refuses.send(nack).await;
    assert!(refuses.is_quiet().await, "the rejected response is not sent again");
    let view = discovery.page("/debug/workloads");
    assert!(view.contains("\"nack\":\"no such extension\""), "{view}");
    assert!(discovery.log().contains("no such extension"));
    let mut other = client(&discovery).await;
    let reporter = reporter(&discovery).await;
    reporter.send(health("")).await;
    other.assignment(has_machine).await;
    drop(acknowledgement(&answer));
}

#[tokio::test]
async fn memory_per_agent_is_bounded() {
    const AGENTS: u8 = 250;
    let discovery = Discovery::start("many", &["--accept-rate", "2000"]);
    let tls = discovery.identity(PAYMENTS);
    let open = async |number: u8| {
        let address = format!("10.0.1.{number}");
        let mut machine = MACHINE;
        machine[2].1 = &address;
        let first = request(EDS, &[], &machine);
        let peer =
            Peer::open_from([127, 9, 1, number], discovery.secure, tls.clone(), Variant::Sotw, first).await;
        let peer = peer.expect("a stream");
        peer.send(health("")).await;
        peer
    };
    let mut peers = Vec::new();
    // The first streams allocate memory that all of them share.
    for number in 0..25 {
        peers.push(open(number).await);
    }
    let before = discovery.memory();
    for number in 25..AGENTS {
        peers.push(open(number).await);
    }
    let mut client = client(&discovery).await;
    client.assignment(|bytes| bytes.windows(10).any(|part| part == b"10.0.1.249")).await;
    let each = (discovery.memory() - before) / u64::from(AGENTS - 25);
    // The binary is not optimized here; the benchmark measures the release build.
    assert!(each <= 96, "{each} KiB for each");
    drop(peers);
}

#[tokio::test]
async fn address_of_another_machine_is_rejected() {
    let discovery = Discovery::start("address", &["--peer-address-check", "require"]);
    let mut client = client(&discovery).await;
    client.assignment(|bytes| !has_machine(bytes)).await;
    let mut reporter = reporter(&discovery).await;
    let status = loop {
        match reporter.next().await {
            Ok(listeners) => assert!(listeners.resources.is_empty(), "{listeners:?}"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("10.0.0.7") && status.message().contains("--peer-address-check"));
    assert!(client.is_quiet().await);
    // A loopback address means another machine for each client, so only local ones may register it.
    let metadata =
        MACHINE.map(|(name, value)| (name, if name == "INSTANCE_IPS" { "127.0.0.7" } else { value }));
    let tls = discovery.identity(PAYMENTS);
    let local = Peer::open(discovery.secure, tls, request(EDS, &[], &metadata)).await.expect("a stream");
    local.send(health("")).await;
    client.assignment(|bytes| bytes.windows(9).any(|part| part == b"127.0.0.7")).await;
}
