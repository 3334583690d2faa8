use probe::{Handler, PluginConfig, Reason, Request};
use tokio::io::{AsyncWriteExt as _, duplex};

use super::super::frame::{flag, kind};
use super::super::script::{data, frame, go_away, headers, reset, settings};
use super::{Unanswered, block, send};
use crate::response::BrokenBody;

const OK: &[(&str, &str)] = &[(":status", "200")];

fn request(headers: &str) -> Request {
    let prober = format!(r#"{{"httpGet": {{"port": 443, "scheme": "HTTPS", "httpHeaders": [{headers}]}}}}"#);
    let config = format!(r#"{{"podIP": "10.0.0.5", "probers": {{"/app-health/a/livez": {prober}}}}}"#);
    let config = PluginConfig::parse(config.as_bytes()).expect("a configuration");
    let (_, prober) = config.probers.iter().next().expect("a prober");
    let Handler::HttpGet(get) = &prober.handler else { panic!("an httpGet") };
    Request::new(get, "10.0.0.5:443")
}

/// Returns status, and whether ten bytes or the end of the body can be read, of an application that sends
/// these frames.
async fn answered(frames: &[Vec<u8>]) -> Result<(u16, Result<(), BrokenBody>), Unanswered> {
    let (client, mut application) = duplex(1 << 20);
    application.write_all(&frames.concat()).await.expect("room");
    application.shutdown().await.expect("open");
    let mut response = send(client, &request(""), b"kube-probe/1.36").await?;
    Ok((response.status, response.body.read_at_most(10).await))
}

#[tokio::test]
async fn responses() {
    let (complete, broken) = (Ok((200, Ok(()))), Ok((200, Err(BrokenBody))));
    let length = |length| headers(1, &[(":status", "200"), ("content-length", length)], false);
    for (name, frames, expected) in [
        ("no body", vec![headers(1, OK, true)], complete),
        ("a body", vec![headers(1, OK, false), data(1, b"abc", true)], complete),
        (
            "ten bytes",
            vec![headers(1, OK, false), data(1, &[0; 5], false), data(1, &[0; 5], false)],
            complete,
        ),
        ("trailers", vec![headers(1, OK, false), headers(1, &[("a", "b")], true)], complete),
        ("interim", vec![headers(1, &[(":status", "103")], false), headers(1, OK, true)], complete),
        ("its length", vec![length("3"), data(1, b"abc", true)], complete),
        ("a strange length", vec![length("x"), data(1, b"abc", true)], complete),
        ("GOAWAY after it", vec![go_away(1, 0), headers(1, OK, true)], complete),
        ("another stream", vec![headers(3, OK, true), headers(1, OK, true)], complete),
        ("no end", vec![headers(1, OK, false), data(1, b"abc", false)], broken),
        ("a reset", vec![headers(1, OK, false), reset(1, 0)], broken),
        ("too short", vec![length("4"), data(1, b"abc", true)], broken),
        ("too long", vec![length("2"), data(1, b"abc", true)], broken),
        (
            "declared, and none",
            vec![headers(1, &[(":status", "200"), ("content-length", "1")], true)],
            broken,
        ),
        ("trailers without end", vec![headers(1, OK, false), headers(1, &[("a", "b")], false)], broken),
    ] {
        let frames = [vec![settings(&[])], frames].concat();
        assert_eq!(answered(&frames).await, expected, "{name}");
    }
}

#[tokio::test]
async fn no_response() {
    let failed = |reason| Err(Unanswered::Failed(reason));
    for (name, frames, expected) in [
        ("nothing", vec![], failed(Reason::Closed)),
        ("no settings", vec![headers(1, OK, true)], failed(Reason::Protocol)),
        ("no status", vec![settings(&[]), headers(1, &[("a", "b")], true)], failed(Reason::Protocol)),
        (
            "a bad status",
            vec![settings(&[]), headers(1, &[(":status", "x")], true)],
            failed(Reason::Protocol),
        ),
        (
            "only interim",
            vec![settings(&[]), headers(1, &[(":status", "103")], true)],
            failed(Reason::Protocol),
        ),
        ("data first", vec![settings(&[]), data(1, b"abc", true)], failed(Reason::Protocol)),
        ("a bad field", vec![settings(&[]), headers(1, &[("A", "b")], true)], failed(Reason::Protocol)),
        ("a bad setting", vec![settings(&[(8, 2)])], failed(Reason::Protocol)),
        (
            "a large window",
            vec![settings(&[]), frame(kind::WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff")],
            failed(Reason::Protocol),
        ),
        (
            "a push",
            vec![settings(&[]), frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, b"\0\0\0\x02")],
            failed(Reason::Protocol),
        ),
        ("cancelled", vec![settings(&[]), reset(1, 8)], failed(Reason::Closed)),
        ("GOAWAY with an error", vec![settings(&[]), go_away(0, 1)], failed(Reason::Closed)),
        ("refused", vec![settings(&[]), reset(1, 7)], Err(Unanswered::Unprocessed)),
        ("GOAWAY", vec![settings(&[]), go_away(0, 0)], Err(Unanswered::Unprocessed)),
    ] {
        assert_eq!(answered(&frames).await.map(|(status, _)| status), expected, "{name}");
    }
}

#[tokio::test]
async fn headers_that_go_refuses_to_leave_out() {
    for (header, is_sent) in [
        (r#"{"name": "Connection", "value": "close"}"#, true),
        (r#"{"name": "Connection", "value": "Keep-Alive"}"#, true),
        (r#"{"name": "Connection", "value": "x"}"#, false),
        (r#"{"name": "Connection", "value": "close"}, {"name": "Connection", "value": "close"}"#, false),
        (r#"{"name": "Upgrade", "value": "websocket"}"#, false),
        (r#"{"name": "Transfer-Encoding", "value": "chunked"}"#, true),
        (r#"{"name": "Transfer-Encoding", "value": "gzip"}"#, false),
        (r#"{"name": "Keep-Alive", "value": "x"}"#, true),
    ] {
        let (client, mut application) = duplex(1 << 20);
        let frames = [settings(&[]), headers(1, OK, true)].concat();
        application.write_all(&frames).await.expect("room");
        let sent = send(client, &request(header), b"x").await.map(|response| response.status);
        assert_eq!(
            sent,
            if is_sent { Ok(200) } else { Err(Unanswered::Failed(Reason::Protocol)) },
            "{header}"
        );
    }
}

#[test]
fn header_blocks_as_go_writes_them() {
    let request = request(
        r#"{"name": "X-A", "value": "1"}, {"name": "Cookie", "value": "a=b; c=d"}, {"name": "Host", "value": "shop"},
           {"name": "Keep-Alive", "value": "x"}, {"name": "Trailer", "value": "t"}"#,
    );
    let mut fields = Vec::new();
    let block = block(&request, b"kube-probe/1.36");
    let emit = |(name, value): super::hpack::Field| {
        fields.push([String::from_utf8_lossy(&name), String::from_utf8_lossy(&value)].join(" "));
    };
    super::hpack::Decoder::default().decode(&block, emit).expect("a block");
    let expected = [
        ":authority shop",
        ":method GET",
        ":path /",
        ":scheme https",
        "user-agent kube-probe/1.36",
        "accept */*",
        "x-a 1",
        "cookie a=b",
        "cookie c=d",
        "trailer t",
    ];
    assert_eq!(fields, expected);
}
