//! The stress tests with smaller counts. `./justw stress` runs them in full.

use stress::{drain, flood, gone, mixed, odd, ports, restarts, slow, swap, timeouts, trap};

#[tokio::test]
async fn a_filter_that_traps_harms_nothing_else() {
    trap::run("trap", 50).await;
}

#[tokio::test]
async fn mixed_requests_leave_nothing() {
    mixed::run("mixed", 2000).await;
}

#[tokio::test]
async fn odd_requests_leave_nothing_in_the_agent() {
    odd::run("odd", 6000).await;
}

#[tokio::test]
async fn a_flood_stops_at_the_limits() {
    flood::run("flood", 2, 4000).await;
}

#[tokio::test]
async fn slow_callers_are_cut() {
    slow::run("slow", 40).await;
}

#[tokio::test]
async fn timeouts_leave_nothing() {
    timeouts::run("timeouts", 96).await;
}

#[tokio::test]
async fn each_probe_has_its_connection() {
    ports::run("ports", 2, 100).await;
}

#[tokio::test]
async fn configurations_change_under_load() {
    swap::run("swap", 10, 100).await;
}

#[tokio::test]
async fn probes_in_flight_outlive_a_drain() {
    drain::run("drain", 1).await;
}

#[tokio::test]
async fn callers_that_leave_free_the_application() {
    gone::run("gone", 2).await;
}

#[tokio::test]
async fn an_envoy_that_dies_is_started_again_where_nobody_else_would() {
    restarts::run("restarts", 3).await;
}
