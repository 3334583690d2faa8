//! What the agent sends on a stream that carries health only.

use readiness::Observation;
use xds::type_url::{ENDPOINT, HEALTH_INFORMATION, PROBE};

use super::*;

/// Reads the first request of a stream.
async fn introduced(server: &Server) -> Stream {
    let mut stream = server.accept().await;
    assert_eq!(stream.request().await.type_url, ENDPOINT);
    stream
}

#[tokio::test(start_paused = true)]
async fn the_node_comes_first_and_reports_follow_the_hello() {
    for variant in [Variant::Sotw, Variant::Delta] {
        let server = Server::start(None).await;
        let config = DiscoveryConfig { variant, ..config(Endpoint::Ip(server.address())) };
        let mut agent = Agent::start_with(config, None);
        let mut stream = server.accept().await;
        assert_eq!((stream.variant, &*stream.authorization), (variant, ""));
        let first = stream.request().await;
        assert_eq!((&*first.type_url, &*first.subscription), (ENDPOINT, &b""[..]));
        let node = node(&first);
        assert_eq!((&*node.id, &*node.program), ("sidecar~10.0.0.7", "app-health-agent"));
        assert_eq!(metadata(&first), json!({ "NAMESPACE": "shop" }));
        let status = agent.status(|status| status.connected.is_some()).await;
        assert_eq!((status.connected.unwrap().0, status.session), (server.address().to_string(), None));

        stream.send(PROBE, "v1", &[hello(&json!({ "session": 17, "heartbeatSeconds": 60 }))]).await;
        let report = stream.request().await;
        assert_eq!((&*report.type_url, report.error.is_some()), (HEALTH_INFORMATION, true), "unknown health");
        let content = &metadata(&report)["APP_HEALTH_REPORT"];
        assert_eq!((&content["state"], &content["reason"]), (&json!("Unknown"), &json!("NoProbe")));
        let ack = stream.request().await;
        let acknowledged = if variant == Variant::Sotw { "v1" } else { "" };
        assert_eq!((&*ack.type_url, &*ack.version, &*ack.nonce), (PROBE, acknowledged, "v1"));
        assert_eq!(ack.error, None);
        agent.status(|status| status.session == Some(17)).await;

        let version = format!("{}/{}", content["epoch"].as_str().unwrap(), content["generation"]);
        stream.send(HEALTH_INFORMATION, &version, &[]).await;
        let status = agent.status(|status| status.acknowledged.is_some()).await;
        assert_eq!(status.acknowledged.unwrap().0, version);
        assert!(agent.has_metric("app_health_agent_reports_total{result=\"acked\"} 1"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_hello_or_probe_is_rejected_and_the_stream_stays_open() {
    let server = Server::start(None).await;
    let agent = Agent::start(&server);
    let mut stream = introduced(&server).await;
    stream.send(PROBE, "v1", &[]).await;
    let nack = stream.request().await;
    assert_eq!((&*nack.version, &*nack.nonce), ("", "v1"));
    assert_eq!(nack.error, Some(Request::status(3, "hello: expected one resource, got 0")));
    assert!(agent.log().contains("invalid hello message received from the discovery server"));

    let probe = json!({ "exec": { "command": ["true"] } });
    stream
        .send(PROBE, "v2", &[hello(&json!({ "session": 1, "heartbeatSeconds": 60, "probe": probe }))])
        .await;
    assert_eq!(stream.request().await.type_url, HEALTH_INFORMATION);
    let nack = stream.request().await;
    let text = nack.error_text().unwrap().unwrap();
    assert!(nack.nonce == "v2" && text.contains("--allow-pushed-exec"), "{nack:?}");
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_after_the_final_report() {
    let server = Server::start(None).await;
    let mut agent = Agent::start(&server);
    let mut stream = introduced(&server).await;
    agent.client.stop.cancel();
    agent.state.apply(Observation::Terminating);
    let report = stream.request().await;
    assert_eq!((&*report.type_url, report.error.is_some()), (HEALTH_INFORMATION, true));
    advance(FINAL_REPORT_TIMEOUT).await;
    (&mut agent.client.task).await.expect("no panic");
}
