//! The stress tests with smaller counts. `./justw stress` runs them in full. Those that ask for the form that the
//! environment selects also run with the agent, see `_load-agent` in the Justfile.

use stress::{drain, flood, gone, mixed, odd, ports, restarts, slow, swap, timeouts, trap};

#[tokio::test]
async fn a_filter_that_traps_does_not_affect_other_traffic() {
    trap::run("trap", 50).await;
}

#[tokio::test]
async fn mixed_requests_leak_nothing() {
    mixed::run("mixed", 2000).await;
}

#[tokio::test]
async fn malformed_requests_leak_nothing_in_the_agent() {
    odd::run("odd", 6000).await;
}

#[tokio::test]
async fn a_flood_stops_at_the_limits() {
    flood::run("flood", 2, 4000).await;
}

#[tokio::test]
async fn slow_clients_are_disconnected() {
    slow::run("slow", 40).await;
}

#[tokio::test]
async fn timeouts_leak_nothing() {
    timeouts::run("timeouts", 96).await;
}

#[tokio::test]
async fn each_probe_opens_its_own_connection() {
    ports::run("ports", 2, 100).await;
}

#[tokio::test]
async fn configurations_change_under_load() {
    swap::run("swap", 10, 100).await;
}

#[tokio::test]
async fn probes_in_flight_finish_during_a_drain() {
    drain::run("drain", 1).await;
}

#[tokio::test]
async fn disconnected_clients_release_the_application() {
    gone::run("gone", 2).await;
}

#[tokio::test]
async fn envoy_is_restarted_with_restart_always() {
    restarts::run("restarts", 3).await;
}
