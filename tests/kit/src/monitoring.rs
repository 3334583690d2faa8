//! The alerts and dashboards in `envoy-config/monitoring/`: their expressions, and the metrics and
//! labels that these use.

mod series;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use series::{Exported, Series, exported, grouping_labels, series_of};

use crate::envoy::workspace;

/// The labels that Prometheus adds to every series of a target, as `prometheus.yaml` configures it, and that of a Pod in a
/// mesh, which Istio's configuration of Prometheus adds.
pub const TARGET_LABELS: [&str; 5] = ["namespace", "pod", "instance", "job", "app_health_io_istio_agent"];

/// An alert of `rules.yaml`.
pub struct Alert {
    pub name: String,
    pub expression: String,
    /// Path of a page in the repository, and its anchor.
    pub runbook_url: String,
}

/// An expression in PromQL.
pub struct Expression {
    /// The alert, or the dashboard and its panel or variable.
    pub origin: String,
    /// Without variables of Grafana outside of strings.
    pub text: String,
}

/// Returns `envoy-config/monitoring/`.
pub fn folder() -> PathBuf {
    workspace().join("envoy-config/monitoring")
}

/// Parses a file with one YAML document.
///
/// # Panics
/// If the file is missing or is not YAML.
pub fn yaml(file: &Path) -> Value {
    let mut documents = documents(file);
    assert_eq!(documents.len(), 1, "{}", file.display());
    documents.remove(0)
}

/// Parses the YAML documents of a file, which lines `---` separate.
///
/// # Panics
/// If the file is missing or is not YAML.
pub fn documents(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("a file");
    let parse = |document| {
        serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    text.split("\n---\n").map(parse).collect()
}

/// Returns the elements of a list; a missing list has none.
pub fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// Returns the alerts of `rules.yaml`.
///
/// # Panics
/// If the file is malformed.
pub fn alerts() -> Vec<Alert> {
    let rules = yaml(&folder().join("rules.yaml"));
    elements(&rules["groups"])
        .flat_map(|group| elements(&group["rules"]))
        .map(|rule| Alert {
            name: text(&rule["alert"]),
            expression: text(&rule["expr"]),
            runbook_url: text(&rule["annotations"]["runbook_url"]),
        })
        .collect()
}

/// Returns the file name and the content of each dashboard.
///
/// # Panics
/// If a dashboard is not JSON.
pub fn dashboards() -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(folder().join("dashboards")).expect("a folder");
    let mut dashboards: Vec<(String, Value)> = entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(entry.path()).expect("a file");
            let dashboard = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, dashboard)
        })
        .collect();
    dashboards.sort_by(|one, other| one.0.cmp(&other.0));
    dashboards
}

/// Returns the expressions of all panels of a dashboard.
pub fn panel_expressions(name: &str, dashboard: &Value) -> Vec<Expression> {
    let panels = elements(&dashboard["panels"]);
    panels
        .flat_map(|panel| elements(&panel["targets"]).map(move |target| (panel, target)))
        .map(|(panel, target)| Expression {
            origin: format!("{name}, {}", panel["title"]),
            text: text(&target["expr"]).replace("$__rate_interval", "5m").replace("$__range", "1h"),
        })
        .collect()
}

/// Returns the queries of the variables of a dashboard.
pub fn variable_queries(name: &str, dashboard: &Value) -> Vec<Expression> {
    elements(&dashboard["templating"]["list"])
        .filter(|variable| variable["type"] == "query")
        .map(|variable| Expression {
            origin: format!("{name}, variable {}", variable["name"]),
            text: text(&variable["query"]["query"]),
        })
        .collect()
}
