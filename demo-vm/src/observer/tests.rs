use serde_json::{Value, json};

use super::health;

fn check(condition: Value, connected: bool, expected: &str) {
    let workload = json!({"address": "127.0.7.3", "condition": condition, "agent": {"connected": connected}});
    assert_eq!(health(&json!({"workloads": [workload]}), "127.0.7.3"), expected);
}

#[test]
fn health_is_shown_with_its_reason() {
    let condition = |status: &str, reason: &str, message: &str| json!({"type": "Healthy", "status": status, "reason": reason, "message": message});
    check(condition("True", "ProbeSucceeded", ""), true, "Healthy");
    check(condition("True", "ProbeSucceeded", ""), false, "Healthy, connection lost");
    check(condition("False", "ProbeFailed", "HTTP status 503"), true, "Unhealthy: HTTP status 503");
    check(condition("False", "Draining", ""), true, "Unhealthy: Draining");
    check(condition("Unknown", "AgentSilent", ""), true, "Unknown: AgentSilent");
    check(Value::Null, true, "no probe");
    assert_eq!(health(&json!({"workloads": []}), "127.0.7.3"), "not registered");
    assert_eq!(health(&Value::Null, "127.0.7.3"), "discovery does not respond");
}
