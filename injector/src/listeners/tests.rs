use serde_json::json;

use super::*;
use crate::tests::settings;

#[test]
fn the_built_in_sidecar_listens_on_its_ports() {
    assert_eq!(ports(&settings(""), None, 15020), [15020, 15021, 15090, 15004, 15000, 15020, 15021]);
    let moved = ports(&settings(""), None, 16020);
    assert!(moved.contains(&16020) && !moved.contains(&15020));
}

#[test]
fn the_template_and_the_pod_move_listeners() {
    let mut settings = settings("");
    settings.template.sidecar = json!({"name": "app-health-proxy", "args": ["run", "--ready-address", "[::]:16021",
        "--admin=127.0.0.1:16000"], "env": [{"name": "APP_HEALTH_STATS_ADDRESS", "value": "off"},
        {"name": "APP_HEALTH_LOCAL_ADDRESS", "value": "127.0.0.1:16004"},
        {"name": "APP_HEALTH_RESERVED_PORTS", "value": "9001, 9002"}],
        "ports": [{"containerPort": 15020}, {"containerPort": 8443}, {"containerPort": 53, "protocol": "UDP"}]});
    settings.template.containers = vec![json!({"name": "logs", "ports": [{"containerPort": 24224}]})];
    let declared = json!({"name": "app-health-proxy", "image": "auto",
        "env": [{"name": "APP_HEALTH_LOCAL_ADDRESS", "value": "unix:/run/agent.sock"}]});
    assert_eq!(
        ports(&settings, Some(&declared), 15020),
        [15020, 16021, 16000, 9001, 9002, 24224, 15020, 8443]
    );
    assert!(ports(&settings, None, 15020).contains(&16004));
}
