//! The shipped Envoy examples: unmodified, and adapted for tests to separate addresses and files.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::app::tls::Identity;
use crate::envoy::workspace;
use crate::pod;

/// Returns the Envoy files below `envoy-config/examples`, by their relative path, for example
/// `strict-mtls/envoy.yaml`.
///
/// # Panics
/// If there are none.
pub fn all() -> BTreeMap<String, String> {
    let root = workspace().join("envoy-config/examples");
    let mut files = BTreeMap::new();
    for folder in std::fs::read_dir(&root).expect("the examples exist") {
        let folder = folder.expect("readable").path();
        for file in std::fs::read_dir(folder).expect("a folder for each example") {
            let file = file.expect("readable").path();
            if file.extension().is_some_and(|extension| extension == "yaml") {
                let name = file.strip_prefix(&root).expect("below it").display().to_string();
                files.insert(name, std::fs::read_to_string(&file).expect("readable"));
            }
        }
    }
    assert!(!files.is_empty(), "no example in {}", root.display());
    files
}

/// Returns the Envoy files of `envoy-config/vm`, by name, for example `envoy.yaml`.
///
/// # Panics
/// If there are none.
pub fn of_machines() -> BTreeMap<String, String> {
    let folder = workspace().join("envoy-config/vm");
    let names = ["envoy.yaml", "envoy-mtls.yaml"];
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the examples exist");
    names.into_iter().map(|name| (name.to_owned(), read(name))).collect()
}

/// Returns one of the files of [`all`].
///
/// # Panics
/// If it does not exist.
pub fn text(name: &str) -> String {
    all().remove(name).unwrap_or_else(|| panic!("no example is called {name}"))
}

/// Returns an example in which every address to listen on or connect to is `ip`, the filter is the
/// one of this build, and the certificates are in `folder`.
pub fn placed(text: &str, ip: IpAddr, folder: &Path) -> String {
    let ip = ip.to_string();
    let filter = pod::wasm().display().to_string();
    text.replace("0.0.0.0", &ip)
        .replace("127.0.0.1", &ip)
        .replace("/etc/envoy/app_health_filter.wasm", &filter)
        .replace("./app_health_filter.wasm", &filter)
        .replace("./certs/", &format!("{}/", folder.display()))
}

/// Like [`placed`], for [`Envoy::start`](crate::envoy::Envoy::start), with the admin socket in
/// `folder`, and with timeouts of probes that do not depend on the speed of the machine.
pub fn runnable(text: &str, ip: IpAddr, folder: &Path) -> Value {
    let mut config = parse(&placed(text, ip, folder));
    set_long_timeouts(&mut config);
    config["admin"] = json!({"address": {"pipe": {"path": folder.join("admin.sock")}}});
    config
}

/// Sets the timeout of every prober in the filter's configuration.
fn set_long_timeouts(value: &mut Value) {
    let configuration = value.pointer_mut("/config/configuration/value");
    if let Some(text) = configuration.filter(|text| text.is_string()) {
        let mut plugin: Value = serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        for prober in plugin["probers"].as_object_mut().into_iter().flatten().map(|(_, prober)| prober) {
            prober["timeoutSeconds"] = Value::Null;
        }
        plugin["probers"] = pod::with_long_timeouts(plugin["probers"].take());
        *text = plugin.to_string().into();
        return;
    }
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(set_long_timeouts),
        Value::Object(fields) => fields.values_mut().for_each(set_long_timeouts),
        _ => {}
    }
}

/// Writes a certificate and its authority into `folder`, under the names that the example with
/// mutual TLS uses.
///
/// # Panics
/// If the folder cannot be written.
pub fn certificates(folder: &Path, identity: &Identity) {
    let files = [
        ("ca.pem", &identity.authority),
        ("server.pem", &identity.certificate),
        ("server-key.pem", &identity.key),
    ];
    for (name, pem) in files {
        std::fs::write(folder.join(name), pem).expect("a writable folder");
    }
}

/// Parses YAML and resolves anchors.
///
/// # Panics
/// If it is not valid YAML.
pub fn parse(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns every object below `value` whose `@type` ends with `name`, for example `Wasm` or
/// `HttpConnectionManager`.
pub fn typed<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    let is_it =
        value["@type"].as_str().is_some_and(|found| found.rsplit('.').next() == Some(name)).then_some(value);
    let children: Vec<&Value> = match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    };
    is_it.into_iter().chain(children.into_iter().flat_map(|child| typed(child, name))).collect()
}
