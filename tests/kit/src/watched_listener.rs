//! The probe listener in a file that Envoy watches, as a control plane would update it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::plain_listener;

pub struct WatchedListener {
    rendered: Value,
    file: PathBuf,
}

impl WatchedListener {
    /// Moves the probe listener from a bootstrap to a file in `folder`.
    ///
    /// # Panics
    /// If there is no probe listener, or the folder is not writable.
    pub fn of(bootstrap: &mut Value, folder: &Path) -> Self {
        let listeners = bootstrap["static_resources"]["listeners"].as_array_mut().expect("a list");
        let place = listeners.iter().position(|listener| listener["name"] == "app_health");
        let rendered = listeners.remove(place.expect("a probe listener"));
        let watched = folder.join("listeners");
        std::fs::create_dir_all(&watched).expect("a writable folder");
        let file = watched.join("listeners.json");
        bootstrap["node"] = json!({"id": "test", "cluster": "test"});
        bootstrap["dynamic_resources"] = json!({"lds_config": {
            "resource_api_version": "V3",
            "path_config_source": {"path": file, "watched_directory": {"path": watched}},
        }});
        Self { rendered, file }
    }

    /// Atomically replaces the listener by one with this prober table.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn write(&self, version: u64, ip: IpAddr, probers: &Value) {
        let mut listener = self.rendered.clone();
        let configuration = json!({"podIP": ip.to_string(), "probers": probers});
        plain_listener::set_configuration(&mut listener, &configuration);
        listener["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener".into();
        self.replace(version, &[listener]);
    }

    /// Atomically removes the listener.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn remove(&self, version: u64) {
        self.replace(version, &[]);
    }

    fn replace(&self, version: u64, listeners: &[Value]) {
        let response = json!({"version_info": version.to_string(), "resources": listeners});
        let new = self.file.with_extension("new");
        std::fs::write(&new, response.to_string()).expect("a writable folder");
        std::fs::rename(&new, &self.file).expect("a writable folder");
    }
}
