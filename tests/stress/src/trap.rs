//! A filter that traps: its own listener responds with 503 at once, other traffic is not affected,
//! and the filter recovers.
//!
//! The shipped filter cannot be made to trap, so another module takes its place in the same
//! bootstrap: it traps on requests with many headers and passes all others on. Envoy reloads a
//! failed VM at most once per second, so of a hundred such requests per second one traps, and the
//! others find the VM failed.

use std::net::SocketAddr;

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use futures_util::future::join;
use serde_json::json;

use super::{Memory, millis};
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::{Envoy, Version, folder};
use kit::load::{Load, Tally, ask, kubelet_request};
use kit::net;
use kit::plain_listener;
use kit::pod::Pod;
use kit::report::Row;
use kit::wait::{self, until};

/// The module traps on more than 20 headers.
const WAT: &str = include_str!("trap.wat");

/// Sends `traps` requests that trap, a hundred per second.
///
/// # Panics
/// If one is not answered with 503, other traffic is affected, the filter does not recover, or
/// memory grows.
pub async fn run(name: &str, traps: u64) -> Vec<Row> {
    let ip = net::loopback();
    let app = CountedApp::start(ip, Habit::status(200));
    let wasm = folder(name).join("trap.wasm");
    std::fs::write(&wasm, wat::parse_str(WAT).expect("the module is WAT")).expect("a writable folder");
    let bootstrap =
        Bootstrap { filter: Some(FilterCode::File(wasm)), ..Pod::bootstrap(name, ip, &json!({})) };
    let mut rendered = serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON");
    let plain = SocketAddr::new(ip, 8000);
    plain_listener::add(&mut rendered, plain, app.address);
    plain_listener::set_timeout(&mut rendered, wait::timeout());
    let envoy = Envoy::start(Version::Newest, folder(name), &rendered, 1).await;

    let listener = bootstrap.probe_address;
    let harmless = kubelet_request(listener, "/");
    let (mut trapping, end) = (harmless.clone(), b"\r\n");
    trapping.truncate(trapping.len() - end.len());
    trapping.extend_from_slice("X-Many: 1\r\n".repeat(30).as_bytes());
    trapping.extend_from_slice(end);

    let serves = async || ask(None, listener, &harmless).await.status == 404;
    assert!(serves().await, "the module passes a request on to the routes");
    // The first failure makes the one-time allocations.
    assert_eq!(ask(None, listener, &trapping).await.status, 503);
    until("the filter is reloaded", serves).await;

    let before = Memory::of(&envoy).await;
    let load = Load { total: traps, at_once: 16, per_second: Some(100) };
    let others = Load { total: traps, at_once: 4, per_second: Some(100) };
    let other = kubelet_request(plain, "/");
    let (trapped, unharmed): (Tally, Tally) =
        join(load.run(|_| ask(None, listener, &trapping)), others.run(|_| ask(None, plain, &other))).await;
    assert_eq!(trapped.of(503), traps, "{trapped:?}");
    assert_eq!(unharmed.of(200), traps, "{unharmed:?}");
    let ended = tokio::time::Instant::now();
    until("the filter is reloaded", serves).await;
    let back = ended.elapsed();
    let mut rows = vec![
        Row::new("slowest 503 of a failed filter", millis(trapped.slowest), "ms"),
        Row::new("time until the filter recovers", millis(back), "ms"),
    ];
    rows.extend(Memory::of(&envoy).await.is_flat_since(before));
    envoy.stop().await;
    rows
}
