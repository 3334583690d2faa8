use std::time::Duration;

use super::{Row, render};
use kit::app::switched::Behavior;

#[test]
fn a_line_for_each_machine_with_the_keys_that_change_it() {
    let row = |number: usize, behavior, has_agent, health: &str, is_endpoint, share| Row {
        number,
        name: format!("payments-{number}"),
        address: format!("127.0.7.{}:8080", number + 2),
        behavior,
        has_agent,
        health: health.into(),
        since: Duration::from_millis(4900),
        is_endpoint,
        share,
    };
    let rows = [
        row(1, Behavior::Serving, true, "Healthy", true, 100),
        row(2, Behavior::Failing, true, "Unhealthy: HTTP status 503", false, 0),
        row(3, Behavior::Hanging, false, "not registered", false, 0),
    ];
    let text = render(&rows);
    let words: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        words,
        [
            "MACHINE ADDRESS APPLICATION AGENT HEALTH SINCE IN ENVOY REQUESTS KEYS",
            "payments-1 127.0.7.3:8080 serves runs Healthy 4 s yes 100 % ██████████ 1 fail 4 hang 7 kill",
            "payments-2 127.0.7.4:8080 answers 503 runs Unhealthy: HTTP status 503 4 s no 0 % 2 heal 5 hang 8 kill",
            "payments-3 127.0.7.5:8080 hangs killed not registered 4 s no 0 % 3 fail 6 heal 9 start",
        ]
    );
}
