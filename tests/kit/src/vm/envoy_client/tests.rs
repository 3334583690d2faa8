use serde_json::json;

use super::endpoints;

#[test]
fn endpoints_of_one_cluster_are_read() {
    let host = |address: &str, port: u16| json!({"address": {"socket_address": {"address": address, "port_value": port}}, "health_status": {"eds_health_status": "HEALTHY"}});
    let clusters = json!({"cluster_statuses": [
        {"name": "discovery", "host_statuses": [host("127.0.0.1", 15010)]},
        {"name": "ours", "host_statuses": [host("127.0.7.3", 8080), host("::1", 8080), {"address": {"pipe": {"path": "/x"}}}]},
        {"name": "empty"},
    ]})
    .to_string();
    let found = |cluster: &str| -> Vec<String> {
        endpoints(&clusters, cluster).iter().map(ToString::to_string).collect()
    };
    assert_eq!(found("ours"), ["127.0.7.3:8080", "[::1]:8080"]);
    assert!(found("empty").is_empty() && found("other").is_empty());
    assert!(endpoints("", "ours").is_empty());
}
