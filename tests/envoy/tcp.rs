//! Tests of `tcpSocket` probes through a real Envoy: a connection is enough, and no byte is sent.

use kit::app::{App, Step};
use kit::envoy::Version;
use kit::net;
use kit::pod::{Pod, SOURCE};
use serde_json::{Value, json};

use crate::e2e::{Listens, Row, check_with};

fn tcp_socket() -> Value {
    json!({"tcpSocket": {"port": "PORT"}})
}

#[tokio::test]
async fn connections_on_both_envoys() {
    for (name, version) in [("tcp", Version::Newest), ("tcp-floor", Version::Floor)] {
        let row = |name, app, status, word| Row { name, app, prober: tcp_socket(), status, word };
        let rows = vec![
            row("open", Listens::Plain(vec![Step::Hang]), 200, ""),
            row("closed-at-once", Listens::Plain(vec![]), 200, ""),
            row("reset-at-once", Listens::Plain(vec![Step::Reset]), 200, ""),
            row(
                "talks-first",
                Listens::Plain(vec![Step::Write(b"220 ready\r\n".to_vec()), Step::Hang]),
                200,
                "",
            ),
            row("refused", Listens::Closed, 502, "refused"),
        ];
        check_with(name, version, rows).await;
    }
}

#[tokio::test]
async fn no_byte_is_sent() {
    let ip = net::loopback();
    let app = App::start(ip, vec![Step::Read]).await;
    let table = json!({"/app-health/app/readyz": {"tcpSocket": {"port": app.port()}}});
    let pod = Pod::start("tcp-silent", ip, &table).await;
    assert_eq!(pod.probe("app").await.status, 200);
    let seen = app.seen_at_least(1).await;
    let [connection] = seen.as_slice() else { panic!("one connection, not {seen:?}") };
    assert_eq!(connection.bytes, b"");
    assert_eq!(connection.peer.ip(), SOURCE);
    pod.envoy.stop().await;
}

/// A listener whose backlog is full drops the SYN, and the kernel repeats it until the probe times
/// out.
#[tokio::test]
async fn a_full_backlog_is_a_timeout() {
    const BACKLOG: u32 = 1;
    let ip = net::loopback();
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((ip, 0).into()).expect("a free port");
    let listener = socket.listen(BACKLOG).expect("a listener");
    let address = listener.local_addr().expect("bound");
    let mut waiting = Vec::new();
    // The kernel accepts one connection more than the backlog.
    while net::accept_queue(address) <= BACKLOG {
        waiting.push(tokio::net::TcpStream::connect(address).await.expect("a place in the backlog"));
    }
    let table =
        json!({"/app-health/app/readyz": {"tcpSocket": {"port": address.port()}, "timeoutSeconds": 1}});
    let pod = Pod::start("tcp-backlog", ip, &table).await;
    let answer = pod.probe("app").await;
    assert_eq!((answer.status, answer.word().as_str()), (504, "timeout"));
    pod.envoy.stop().await;
}
