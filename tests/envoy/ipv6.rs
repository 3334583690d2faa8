//! Tests of probes over IPv6 through a real Envoy. They run in a new network namespace, because `::1`
//! is shared by all processes of a machine, and because `lo` needs the source address `::6`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::Command;

use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, Tls};
use kit::app::{App, answer};
use kit::caller;
use kit::envoy::{Version, probe_listener};
use kit::load::connect;
use kit::not_tested;
use kit::pod::{Pod, with_long_timeouts};
use kit::reserved_port::ReservedPort;
use nix::sched::{CloneFlags, unshare};
use serde_json::json;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const IP: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const SOURCE: IpAddr = IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0, 0, 0, 6));
const NODE: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 7));

/// Moves this thread into a new network namespace whose `lo` has the addresses `::6` and `fd00::7`.
fn enter_namespace() {
    unshare(CloneFlags::CLONE_NEWNET).expect("root can create a network namespace");
    for arguments in
        ["link set lo up", "-6 address add ::6/128 dev lo nodad", "-6 address add fd00::7/128 dev lo nodad"]
    {
        let status = Command::new("ip").args(arguments.split(' ')).status().expect("`ip` starts");
        assert!(status.success(), "ip {arguments}");
    }
}

#[test]
fn every_kind_over_ipv6() {
    if !not_tested::has_root_and("probes over IPv6", &["ip"]) {
        return;
    }
    // A separate thread, because the namespace applies to this thread only and ends with it.
    let test = std::thread::spawn(|| {
        enter_namespace();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(probes());
    });
    test.join().expect("every kind works over IPv6");
}

async fn probes() {
    tls::install_provider();
    let app = App::start(IP, answer(OK)).await;
    let over_tls = App::start_tls(IP, Tls::default().acceptor(), answer(OK)).await;
    let health = GrpcApp::scripted(IP, None, GrpcAnswer::serving(1)).await;
    let target = app.address;
    let hop = move |_: &str| {
        answer(format!("HTTP/1.1 302 Found\r\nLocation: http://{target}/\r\nContent-Length: 0\r\n\r\n"))
    };
    let redirect = App::routes(SocketAddr::new(IP, 0), None, hop).await;
    let closed = ReservedPort::new(IP);
    let table = json!({
        "/app-health/http/readyz": {"httpGet": {"port": app.port()}},
        "/app-health/https/readyz": {"httpGet": {"port": over_tls.port(), "scheme": "HTTPS"}},
        "/app-health/tcp/readyz": {"tcpSocket": {"port": app.port()}},
        "/app-health/grpc/readyz": {"grpc": {"port": health.port()}},
        "/app-health/redirect/readyz": {"httpGet": {"port": redirect.port()}},
        "/app-health/refused/readyz": {"httpGet": {"port": closed.port()}},
        "/app-health/tcp-refused/readyz": {"tcpSocket": {"port": closed.port()}},
    });
    let mut bootstrap = Pod::bootstrap("ipv6", IP, &with_long_timeouts(table));
    bootstrap.probe_address = probe_listener(IP);
    bootstrap.sources = vec![SOURCE];
    bootstrap.node = vec![NODE];
    let pod = Pod::with("ipv6", Version::Newest, &bootstrap).await;
    for (container, status) in [
        ("http", 200),
        ("https", 200),
        ("tcp", 200),
        ("grpc", 200),
        ("redirect", 200),
        ("refused", 502),
        ("tcp-refused", 502),
    ] {
        let path = format!("/app-health/{container}/readyz");
        let answer = caller::probe(pod.listener, &path).await;
        assert_eq!(answer.status, status, "{container}: {answer:?}\n{}", pod.envoy.log());
    }
    for (client, chain) in [(NODE, "app_health_node"), (SOURCE, "app_health")] {
        let connection = connect(Some(client), pod.listener).await.expect("Envoy accepts");
        pod.envoy.until_stat(&format!("connection_limit.{chain}.active_connections"), 1).await;
        drop(connection);
        pod.envoy.until_stat(&format!("connection_limit.{chain}.active_connections"), 0).await;
    }
    let seen = app.seen_at_least(1).await;
    let first = seen.first().expect("a connection");
    assert_eq!(first.header("Host"), Some(app.address.to_string()));
    assert_eq!(first.peer.ip(), SOURCE);
    pod.envoy.stop().await;
}
