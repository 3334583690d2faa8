use serde_json::{Value, json};

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

/// A flag overrides a variable, whichever of the two containers has it, and lists merge as they do in
/// the injected container.
#[test]
fn ports_are_those_of_the_injected_container() {
    let mut settings = settings("");
    settings.template.sidecar = json!({"name": "app-health-proxy", "args": ["--ready-address=[::]:16021"],
        "env": [{"name": "APP_HEALTH_RESERVED_PORTS", "value": "9001"}],
        "ports": [{"containerPort": 8443}]});
    let declared = |fields: Value| {
        let found = ports(&settings, Some(&fields), 15020);
        [16021, 17021, 15021, 9001, 9002, 8443, 8444].map(|port| found.contains(&port))
    };
    let variable = json!({"env": [{"name": "APP_HEALTH_READY_ADDRESS", "value": "[::]:17021"}]});
    assert_eq!(declared(variable), [true, false, false, true, false, true, false]);
    // The arguments of the Pod replace those of the template.
    let arguments = json!({"args": ["run", "--reserved-port", "9002"], "ports": [{"containerPort": 8444}]});
    assert_eq!(declared(arguments), [false, false, true, false, true, true, true]);
    let no_variable = json!({"env": [{"name": "APP_HEALTH_RESERVED_PORTS", "value": ""}]});
    assert_eq!(declared(no_variable), [true, false, false, false, false, true, false]);
}

#[test]
fn native_sidecars_of_the_template_have_ports() {
    let mut settings = settings("");
    settings.template.init_containers = vec![
        json!({"name": "logs", "restartPolicy": "Always", "ports": [{"containerPort": 24224}]}),
        json!({"name": "init", "ports": [{"containerPort": 24225}]}),
    ];
    let found = ports(&settings, None, 15020);
    assert_eq!((found.contains(&24224), found.contains(&24225)), (true, false));
}
