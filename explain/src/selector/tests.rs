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
