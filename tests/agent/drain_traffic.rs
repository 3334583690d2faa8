//! Tests of traffic while Envoy drains: requests in flight finish, and outbound traffic works until
//! Envoy exits.

use std::sync::Arc;
use std::time::Duration;

use kit::app::{App, Step};
use kit::caller;
use kit::process::is_alive;
use kit::sidecar::Builder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::run::user_config;

const INBOUND: u16 = 18080;
const OUTBOUND: u16 = 18081;

/// The user's two listeners: an inbound one that routes to the application, and an outbound one
/// that answers in place of another service.
fn config(ip: std::net::IpAddr, app: &App) -> Value {
    let mut config = user_config(ip, INBOUND);
    let mut outbound = user_config(ip, OUTBOUND)["static_resources"]["listeners"][0].take();
    outbound["name"] = json!("others");
    outbound["traffic_direction"] = json!("OUTBOUND");
    let resources = &mut config["static_resources"];
    let manager = "/listeners/0/filter_chains/0/filters/0/typed_config/route_config/virtual_hosts/0/routes/0";
    *resources.pointer_mut(manager).expect("a route") =
        json!({"match": {"prefix": "/"}, "route": {"cluster": "app"}});
    resources["listeners"].as_array_mut().expect("a list").push(outbound);
    let address =
        json!({"socket_address": {"address": app.address.ip().to_string(), "port_value": app.port()}});
    resources["clusters"] = json!([{"name": "app", "load_assignment": {"cluster_name": "app", "endpoints": [
        {"lb_endpoints": [{"endpoint": {"address": address}}]}
    ]}}]);
    config
}

#[tokio::test]
async fn requests_in_flight_finish_and_outbound_continues() {
    let builder = Builder::new("traffic");
    let finish = Arc::new(Notify::new());
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n".to_vec();
    let steps = vec![
        Step::Read,
        Step::Write(head),
        Step::Until(Arc::clone(&finish)),
        Step::Write(b"slowly".to_vec()),
    ];
    let app = App::start(builder.ip, steps).await;
    let user = builder.folder.join("user.json");
    std::fs::write(&user, config(builder.ip, &app).to_string()).expect("a writable folder");
    let flags = ["--user-config", user.to_str().expect("a path"), "--drain-seconds", "1"];
    let sidecar = builder.args(&flags).start();
    sidecar.until(200, "ready").await;
    let (envoy, ip) = (sidecar.envoy_pid(), sidecar.ip);

    let in_flight = tokio::spawn(async move { caller::get((ip, INBOUND).into(), "/", &[]).await });
    app.seen_at_least(1).await;
    sidecar.signal(Signal::SIGTERM);
    sidecar.until(503, "draining").await;
    // `--drain-seconds` is over long before the response is complete.
    let (mut calls, began) = (0, Instant::now());
    while calls < 20 || began.elapsed() < Duration::from_secs(3) {
        // `caller::get` opens a new connection for each call.
        let answer = caller::get((ip, OUTBOUND).into(), "/", &[]).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "theirs"), "after {calls} calls");
        assert!(is_alive(envoy), "{}", sidecar.log());
        calls += 1;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!in_flight.is_finished());
    finish.notify_one();
    let answer = in_flight.await.expect("a caller");
    assert_eq!((answer.status, answer.complete, answer.text().as_str()), (200, true, "slowly"), "{answer:?}");
    let (code, log) = sidecar.end().await;
    assert_eq!(code, Some(0), "{log}");
}
