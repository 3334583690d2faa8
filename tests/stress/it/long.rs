//! Stress tests with minutes of load and up to a million requests. They are ignored by default and
//! print their measurements. They run one at a time, because each needs the whole machine.

use kit::report::{self, Row};
use stress::{drain, flood, gone, mixed, odd, ports, restarts, slow, swap, timeouts, trap};
use tokio::sync::Mutex;

/// Held by the test that currently runs.
static TURN: Mutex<()> = Mutex::const_new(());

#[expect(clippy::print_stdout, reason = "the output of a stress test is its measurements")]
async fn run(name: &str, run: impl Future<Output = Vec<Row>>) {
    let _turn = TURN.lock().await;
    let rows = run.await;
    println!("{name}\n{}\n", report::table(&rows));
}

#[tokio::test]
#[ignore = "a minute"]
async fn a_hundred_traps_a_second_for_a_minute() {
    run("traps", trap::run("s-trap", 6000)).await;
}

#[tokio::test]
#[ignore = "some minutes"]
async fn a_million_mixed_requests() {
    run("mixed requests", mixed::run("s-mixed", 1_000_000)).await;
}

#[tokio::test]
#[ignore = "some minutes"]
async fn a_million_malformed_requests_to_the_agent() {
    run("odd requests", odd::run("s-odd", 1_000_000)).await;
}

#[tokio::test]
#[ignore = "half a minute"]
async fn twenty_thousand_requests_a_second_on_one_path() {
    run("flood", flood::run("s-flood", 30, 20_000)).await;
}

#[tokio::test]
#[ignore = "half a minute"]
async fn a_thousand_slow_clients() {
    run("slow callers", slow::run("s-slow", 1000)).await;
}

#[tokio::test]
#[ignore = "a minute"]
async fn ten_thousand_timeouts() {
    run("timeouts", timeouts::run("s-timeouts", 10_000)).await;
}

#[tokio::test]
#[ignore = "a minute"]
async fn six_hundred_probes_a_second_for_a_minute() {
    run("ports", ports::run("s-ports", 60, 600)).await;
}

#[tokio::test]
#[ignore = "some minutes"]
async fn five_hundred_configurations_under_load() {
    run("configurations", swap::run("s-swap", 500, 1000)).await;
}

#[tokio::test]
#[ignore = "half a minute"]
async fn drains_with_probes_in_flight() {
    run("drains", drain::run("s-drain", 20)).await;
}

#[tokio::test]
#[ignore = "half a minute"]
async fn clients_that_disconnect() {
    run("callers gone", gone::run("s-gone", 100)).await;
}

#[tokio::test]
#[ignore = "two minutes"]
async fn ten_restarts_of_envoy_in_a_row() {
    run("restarts", restarts::run("s-restarts", 10)).await;
}
