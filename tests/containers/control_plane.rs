//! Tests of the control plane's image, whose base contains only the shared libraries.

use kit::authority::Authority;
use kit::docker::{CONTROL_PLANE, Daemon};
use kit::envoy;
use serde_json::{Value, json};

/// The restrictions that the manifests put on the container.
const FIELD: [&str; 5] = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];

pub(crate) async fn control_plane(daemon: &Daemon) {
    let text = daemon.ask(&["image", "inspect", "--format", "{{json .Config}}", CONTROL_PLANE]);
    let config: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(config["User"], "1337:1337");
    // The manifests name the command, so the image has none.
    assert_eq!((&config["Entrypoint"], &config["Cmd"]), (&json!(["app-health"]), &Value::Null));

    let folder = envoy::folder("containers-certificate");
    let issued = Authority::new().sign("webhook.test");
    for (name, text) in [("tls.crt", issued.certificate), ("tls.key", issued.key)] {
        std::fs::write(folder.join(name), text).expect("a writable folder");
    }
    let mount = format!("{}:/certificate:ro", folder.display());
    let words = ["--volume", &mount, CONTROL_PLANE, "webhook", "--cert-dir", "/certificate"];
    let webhook = daemon.run(&[&FIELD[..], &words].concat());
    webhook.until(15014, "/healthz/ready", 200).await;
    let owner = webhook.among_processes("stat -c %u /proc/1");
    assert_eq!(owner, "1337");
    webhook.signal("TERM");
    assert_eq!(webhook.end().await, 0, "{}", webhook.logs());
}
