use probe::Reason;
use probe::grpc_health::request_message;
use tokio::io::{AsyncWriteExt as _, duplex};

use super::super::script::{data, go_away, headers, reset, settings};
use super::{Call, Failed, check};

const HEAD: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
const SERVING: &[u8] = &[0, 0, 0, 0, 2, 8, 1];

async fn answered_to(is_retry: bool, frames: &[Vec<u8>]) -> Result<Reason, Failed> {
    let (client, mut application) = duplex(1 << 20);
    application.write_all(&frames.concat()).await.expect("room");
    application.shutdown().await.expect("open");
    let call = Call {
        authority: "10.0.0.5:80",
        scheme: "http",
        user_agent: b"kube-probe/1.36",
        timeout: "1000m",
        message: &request_message("shop"),
    };
    check(client, call, is_retry).await.map(|checked| checked.reason)
}

async fn answered(frames: &[Vec<u8>]) -> Result<Reason, Failed> {
    answered_to(false, frames).await
}

fn end(status: &str) -> Vec<u8> {
    headers(1, &[("grpc-status", status)], true)
}

#[tokio::test]
async fn responses() {
    let failed = Err(Failed::Call(Reason::GrpcError));
    let only = |status: &'static str| {
        headers(1, &[(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", status)], true)
    };
    for (name, frames, expected) in [
        ("serving", vec![headers(1, HEAD, false), data(1, SERVING, false), end("0")], Ok(Reason::Ok)),
        (
            "in two frames, after an interim response",
            vec![
                headers(1, &[(":status", "103")], false),
                headers(1, HEAD, false),
                data(1, &SERVING[..3], false),
                data(1, &SERVING[3..], false),
                end("0"),
            ],
            Ok(Reason::Ok),
        ),
        ("only trailers", vec![only("12")], Ok(Reason::GrpcUnimplemented)),
        ("a status", vec![headers(1, HEAD, false), end("5")], Ok(Reason::GrpcServiceUnknown)),
        ("no message", vec![headers(1, HEAD, false), end("0")], Ok(Reason::GrpcError)),
        ("a strange status", vec![headers(1, HEAD, false), end("x")], failed),
        ("no trailers", vec![headers(1, HEAD, false), data(1, SERVING, true)], failed),
        ("headers in between", vec![headers(1, HEAD, false), headers(1, &[("a", "b")], false)], failed),
        (
            "a binary field that is none",
            vec![headers(
                1,
                &[(":status", "200"), ("content-type", "application/grpc"), ("x-bin", "?")],
                false,
            )],
            failed,
        ),
        ("no gRPC", vec![headers(1, &[(":status", "404"), ("content-type", "text/html")], false)], failed),
        ("reset", vec![reset(1, 2)], failed),
        (
            "large",
            vec![headers(1, HEAD, false), data(1, &[0; 40_000], false), data(1, &[0; 40_000], false)],
            failed,
        ),
        ("no end", vec![headers(1, HEAD, false)], Err(Failed::Call(Reason::Closed))),
    ] {
        assert_eq!(answered(&[vec![settings(&[])], frames].concat()).await, expected, "{name}");
    }
}

#[tokio::test]
async fn connections_that_are_not_established() {
    assert_eq!(answered(&[]).await, Err(Failed::Connection(Reason::Closed)));
    assert_eq!(answered(&[headers(1, HEAD, false)]).await, Err(Failed::Connection(Reason::GrpcError)));
    assert_eq!(
        answered(&[b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]).await,
        Err(Failed::Connection(Reason::GrpcError))
    );
}

#[tokio::test]
async fn a_call_that_was_not_processed_is_repeated_once() {
    let served = |stream| {
        [
            headers(stream, HEAD, false),
            data(stream, SERVING, false),
            headers(stream, &[("grpc-status", "0")], true),
        ]
        .concat()
    };
    assert_eq!(answered(&[settings(&[]), reset(1, 7), served(3)]).await, Ok(Reason::Ok));
    let twice = answered(&[settings(&[]), reset(1, 7), reset(3, 7)]).await;
    assert_eq!(twice, Err(Failed::Call(Reason::GrpcError)));
    assert_eq!(answered(&[settings(&[]), go_away(0, 0)]).await, Err(Failed::Unprocessed));
    let again = answered_to(true, &[settings(&[]), go_away(0, 0)]).await;
    assert_eq!(again, Err(Failed::Call(Reason::GrpcError)));
}

#[test]
fn base64() {
    for (value, is_valid) in [
        ("", true),
        ("YQ==", true),
        ("YQ", true),
        ("YWI=", true),
        ("YWJj", true),
        ("Y", false),
        ("YQ=", false),
        ("Y===", false),
        ("Y=Q=", false),
        ("Y-Q_", false),
    ] {
        assert_eq!(super::is_base64(value.as_bytes()), is_valid, "{value}");
    }
}

#[tokio::test]
async fn windows_and_streams_are_awaited() {
    const MAX_STREAMS: u16 = 3;
    const WINDOW: u16 = 4;
    const MAX_HEADER_LIST: u16 = 6;
    let served = [headers(1, HEAD, false), data(1, SERVING, false), end("0")].concat();
    let frames = [settings(&[(MAX_STREAMS, 0)]), settings(&[(MAX_STREAMS, 1)]), served.clone()];
    assert_eq!(answered(&frames).await, Ok(Reason::Ok));
    assert_eq!(answered(&[settings(&[(MAX_STREAMS, 0)])]).await, Err(Failed::Call(Reason::Closed)));
    let limit = settings(&[(MAX_HEADER_LIST, 100)]);
    assert_eq!(answered(&[limit, served.clone()]).await, Err(Failed::Call(Reason::GrpcError)));
    let frames = [settings(&[(WINDOW, 0)]), settings(&[(WINDOW, 100)]), served];
    assert_eq!(answered(&frames).await, Ok(Reason::Ok));
}
