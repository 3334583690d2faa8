use probe::{Handler, PluginConfig, Reason, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::send;
use crate::response::BrokenBody;

fn request() -> Request {
    let config = br#"{"podIP": "10.0.0.5", "probers": {"/app-health/a/livez": {"httpGet": {"port": 80}}}}"#;
    let config = PluginConfig::parse(config).expect("a configuration");
    let (_, prober) = config.probers.iter().next().expect("a prober");
    let Handler::HttpGet(get) = &prober.handler else { panic!("an httpGet") };
    Request::new(get, "10.0.0.5:80")
}

/// Answers a request with `response` and the end of the connection; returns the status, and whether the body
/// is complete.
async fn answered(response: &[u8]) -> Result<(u16, Result<(), BrokenBody>), Reason> {
    let (client, mut application) = duplex(1 << 20);
    application.write_all(response).await.expect("room");
    application.shutdown().await.expect("open");
    let mut response = send(client, &request(), b"kube-probe/1.36").await?;
    let mut sent = [0; 100];
    let length = application.read(&mut sent).await.expect("a request");
    assert!(sent[..length].starts_with(b"GET / HTTP/1.1\r\n"));
    Ok((response.status, response.body.read_at_most(10).await))
}

#[tokio::test]
async fn responses() {
    let complete = |status| Ok((status, Ok(())));
    let broken = |status| Ok((status, Err(BrokenBody)));
    for (response, expected) in [
        ("HTTP/1.1 200 OK\r\n\r\n", complete(200)),
        (
            "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\nHTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n",
            complete(503),
        ),
        ("HTTP/1.1 101 x\r\n\r\n", complete(101)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", broken(200)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n0123456789", complete(200)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na", broken(200)),
        ("HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n", complete(204)),
        ("", Err(Reason::Closed)),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", Err(Reason::Closed)),
        ("HTTP/1.1 200 OK\r\nA b\r\n\r\n", Err(Reason::Protocol)),
        ("SSH-2.0-OpenSSH\r\n", Err(Reason::Protocol)),
    ] {
        assert_eq!(answered(response.as_bytes()).await, expected, "{response:?}");
    }
}

#[tokio::test]
async fn heads_have_a_limit() {
    let line = format!("A: {}\r\n", "x".repeat(1000));
    let head = |lines: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", line.repeat(lines));
    assert_eq!(answered(head(1000).as_bytes()).await, Ok((200, Ok(()))));
    let (client, mut application) = duplex(1 << 16);
    let writer = tokio::spawn(async move { while application.write_all(line.as_bytes()).await.is_ok() {} });
    let first = async {
        let (stream, request) = (client, request());
        send(stream, &request, b"x").await.map(|response| response.status)
    };
    assert_eq!(first.await, Err(Reason::Protocol));
    writer.await.expect("no panic");
}
