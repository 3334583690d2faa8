use serde_json::json;

use super::*;

#[test]
fn selectors() {
    let labels = json!({"app": "web", "tier": "front"});
    let cases = [
        (json!(null), true),
        (json!({}), true),
        (json!({"matchLabels": {"app": "web"}}), true),
        (json!({"matchLabels": {"app": "web", "tier": "back"}}), false),
        (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "shop"]}]}), true),
        (json!({"matchExpressions": [{"key": "other", "operator": "In", "values": ["web"]}]}), false),
        (json!({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["web"]}]}), true),
        (json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false),
        (json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), true),
        (json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), false),
        (
            json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "Unknown"}]}),
            false,
        ),
    ];
    for (selector, expected) in cases {
        assert_eq!(selects(&selector, &labels), expected, "{selector}");
    }
}

#[test]
fn queries() {
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["front", "back"]},
        {"key": "zone", "operator": "NotIn", "values": ["a"]},
        {"key": "owner", "operator": "Exists"},
        {"key": "canary", "operator": "DoesNotExist"},
    ]});
    assert_eq!(query(&selector), "app=web,tier in (front,back),zone notin (a),owner,!canary");
    assert_eq!(query(&Value::Null), "");
}
