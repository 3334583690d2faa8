//! Runs Helm with the shipped chart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kit::envoy::workspace;
use serde_json::Value;

/// Maps kind and name to an object.
pub type Objects = BTreeMap<(String, String), Value>;

/// Runs Helm with a separate folder for caches and values.
pub struct Helm {
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Helm {
    /// Returns a Helm that writes only into `folder`, and uses the cluster of `kubeconfig`.
    ///
    /// # Panics
    /// If the folder is not writable.
    pub fn new(folder: &Path, kubeconfig: PathBuf) -> Self {
        fs::create_dir_all(folder).expect("a writable folder");
        Self { folder: folder.to_path_buf(), kubeconfig }
    }

    /// Runs Helm, and returns stdout, or stderr if it fails.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(program())
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder.join("kubernetes"))
            .env("HELM_CACHE_HOME", self.folder.join("cache"))
            .env("HELM_CONFIG_HOME", self.folder.join("config"))
            .env("HELM_DATA_HOME", self.folder.join("data"))
            .output()
            .expect("helm starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }

    /// Runs a command of Helm that takes a release and the chart, with these values.
    ///
    /// # Errors
    /// The error is what Helm prints to stderr.
    ///
    /// # Panics
    /// If the values cannot be written.
    pub fn run_with(&self, command: &[&str], values: &Value) -> Result<String, String> {
        let file = self.folder.join("values.json");
        fs::write(&file, values.to_string()).expect("a writable folder");
        let (file, chart) = (file.to_str().expect("UTF-8"), chart());
        let chart = chart.to_str().expect("UTF-8");
        self.run(&[command, &[chart, "--values", file]].concat())
    }

    /// Renders the chart for `namespace`.
    ///
    /// # Errors
    /// The error is what Helm prints to stderr.
    ///
    /// # Panics
    /// If the values cannot be written.
    pub fn template(&self, namespace: &str, values: &Value) -> Result<String, String> {
        self.run_with(&["template", "any-release", "--namespace", namespace], values)
    }
}

/// Returns the path of Helm.
///
/// # Panics
/// If it is missing, because a test without it must not pass.
pub fn program() -> PathBuf {
    let helm = workspace().join("target/helm/helm");
    assert!(helm.is_file(), "{} is missing: run ./justw test-kubernetes", helm.display());
    helm
}

/// Returns the folder of the shipped chart.
pub fn chart() -> PathBuf {
    workspace().join("charts/app-health")
}

/// Parses YAML documents into objects.
///
/// # Panics
/// If the text is not YAML, or contains an object twice.
pub fn objects(yaml: &str) -> Objects {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
    let mut objects = Objects::new();
    for object in documents.into_iter().filter(|document| !document.is_null()) {
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let key = (text(&object["kind"]), text(&object["metadata"]["name"]));
        assert!(objects.insert(key.clone(), object).is_none(), "{key:?} occurs twice");
    }
    objects
}
