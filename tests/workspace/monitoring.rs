//! The alerts and dashboards in `envoy-config/monitoring/` are valid, tested and documented. That their
//! metrics exist is a test of the suite `control-plane`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use kit::envoy;
use kit::monitoring::{self, alerts, dashboards, documents, elements, folder, panel_expressions, yaml};
use kit::promtool::Promtool;
use serde_json::{Value, json};

use crate::root;

#[test]
fn prometheus_accepts_the_rules_and_their_tests_pass() {
    let Some(promtool) = Promtool::find() else { return };
    for arguments in [["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"]] {
        promtool.run(&folder(), &arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
    }
}

/// Each alert has a test in which it fires for some targets, and not for others that have series too.
#[test]
fn each_alert_is_tested_for_firing_and_for_silence() {
    let instance = |series: &str| {
        let rest = series.split_once("instance=\"").map(|(_, rest)| rest);
        rest.and_then(|rest| rest.split('"').next()).map(str::to_owned)
    };
    let tests = yaml(&folder().join("rules.test.yaml"));
    let mut tested = Vec::new();
    for test in elements(&tests["tests"]) {
        let name = &test["alert_rule_test"][0]["alertname"];
        let expected = elements(&test["alert_rule_test"][0]["exp_alerts"]);
        let firing: BTreeSet<String> = expected
            .filter_map(|alert| alert["exp_labels"]["instance"].as_str().map(str::to_owned))
            .collect();
        let all: BTreeSet<String> = elements(&test["input_series"])
            .filter_map(|series| instance(series["series"].as_str().unwrap_or_default()))
            .collect();
        assert!(!firing.is_empty() && firing.is_subset(&all), "{name}: {firing:?}, {all:?}");
        assert!(firing.len() < all.len(), "{name}: no target without the alert");
        tested.push(name.as_str().expect("a name").to_owned());
    }
    let alerts: Vec<String> = alerts().into_iter().map(|alert| alert.name).collect();
    assert_eq!(tested, alerts);
}

/// Every `runbook_url` names a heading, and every heading of that level is an alert.
#[test]
fn each_alert_has_its_heading() {
    let page = fs::read_to_string(root().join("docs/alerts.md")).expect("a page");
    let headings: BTreeSet<&str> = page.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alerts = alerts();
    for alert in &alerts {
        let url = format!("docs/alerts.md#{}", alert.name.to_lowercase());
        assert_eq!(alert.runbook_url, url, "{}", alert.name);
    }
    assert_eq!(headings, alerts.iter().map(|alert| alert.name.as_str()).collect());
}

/// Prometheus parses each expression as the one of a recording rule.
#[test]
fn prometheus_accepts_the_expressions_of_the_dashboards() {
    let Some(promtool) = Promtool::find() else { return };
    let all = dashboards();
    let expressions = all.iter().flat_map(|(name, dashboard)| panel_expressions(name, dashboard));
    let rules: Vec<Value> = expressions
        .enumerate()
        .map(|(number, expression)| {
            // Two rules with the same name and labels are an error.
            json!({"record": format!("expression_{number}"), "expr": expression.text,
                "labels": {"origin": expression.origin}})
        })
        .collect();
    assert!(rules.len() > 50, "{} expressions", rules.len());
    let folder = envoy::folder("dashboard-expressions");
    let rules = json!({"groups": [{"name": "dashboards", "rules": rules}]});
    fs::write(folder.join("rules.yaml"), rules.to_string()).expect("a writable folder");
    promtool.run(&folder, &["check", "rules", "rules.yaml"]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn dashboards_are_complete() {
    let mut uids = BTreeSet::new();
    for (name, dashboard) in dashboards() {
        assert!(uids.insert(dashboard["uid"].to_string()), "{name}: the uid occurs twice");
        let mut ids = BTreeSet::new();
        let mut cells = BTreeSet::new();
        for panel in elements(&dashboard["panels"]) {
            let title = &panel["title"];
            assert!(ids.insert(panel["id"].as_u64()), "{name}, {title}: the id occurs twice");
            let cell = |key: &str| panel["gridPos"][key].as_u64().expect("a position");
            for x in cell("x")..cell("x") + cell("w") {
                for y in cell("y")..cell("y") + cell("h") {
                    assert!(x < 24 && cells.insert((x, y)), "{name}, {title}: covers another panel");
                }
            }
            if panel["type"] == "row" {
                continue;
            }
            let description = panel["description"].as_str().unwrap_or_default();
            assert!(description.ends_with('.'), "{name}, {title}: {description}");
            assert!(elements(&panel["targets"]).next().is_some(), "{name}, {title}: no target");
        }
        let variables = elements(&dashboard["templating"]["list"]);
        let is_datasource = |variable: &&Value| variable["type"] == "datasource";
        assert!(variables.filter(is_datasource).any(|variable| variable["name"] == "datasource"), "{name}");
        let text = dashboard.to_string();
        let named = text.matches("\"datasource\":{").count();
        assert_eq!(text.matches("\"uid\":\"${datasource}\"").count(), named, "{name}: a fixed data source");
    }
    assert_eq!(uids.len(), 4);
}

/// Prometheus accepts the example, and both examples name the jobs and ports that exist.
#[test]
fn the_scrape_configurations_are_valid() {
    let mut config = yaml(&folder().join("prometheus.yaml"));
    let monitors = documents(&folder().join("pod-monitors.yaml"));
    let jobs: Vec<&str> =
        elements(&config["scrape_configs"]).filter_map(|job| job["job_name"].as_str()).collect();
    for monitor in &monitors {
        let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
        let relabeling = elements(&endpoint["relabelings"]).find(|found| found["targetLabel"] == "job");
        assert_eq!(relabeling.map(|found| &found["replacement"]), Some(&monitor["metadata"]["name"]));
        assert!(monitor["metadata"]["name"].as_str().is_some_and(|name| jobs.contains(&name)), "{monitor}");
        let manifests = ["sidecar.yaml", "base/deployment.yaml", "discovery/deployment.yaml"];
        let is_port = |file: &str| {
            let manifest = root().join("envoy-config/kubernetes").join(file);
            let port = format!("{{name: {}, containerPort: ", endpoint["port"].as_str().unwrap_or_default());
            fs::read_to_string(manifest).expect("a manifest").contains(&port)
        };
        assert!(manifests.into_iter().any(is_port), "{endpoint}");
    }
    assert_eq!((jobs.len(), monitors.len()), (4, 3));

    let Some(promtool) = Promtool::find() else { return };
    // Debian's promtool is built without the discovery of Kubernetes.
    for job in config["scrape_configs"].as_array_mut().expect("a list").iter_mut() {
        job.as_object_mut().expect("a job").remove("kubernetes_sd_configs");
    }
    let copy = envoy::folder("scrape-config");
    fs::copy(folder().join("rules.yaml"), copy.join("rules.yaml")).expect("a writable folder");
    fs::write(copy.join("prometheus.yaml"), config.to_string()).expect("a writable folder");
    promtool.run(&copy, &["check", "config", "prometheus.yaml"]).unwrap_or_else(|error| panic!("{error}"));
}

/// The commands of the README write the rules with an address before each `runbook_url`, and wrap them
/// for the Prometheus Operator.
#[test]
fn the_commands_of_the_readme_work() {
    let folder = envoy::folder("monitoring-commands");
    std::os::unix::fs::symlink(root().join("envoy-config"), folder.join("envoy-config")).expect("a link");
    let readme = fs::read_to_string(monitoring::folder().join("README.md")).expect("a page");
    for block in readme.split("```sh\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let lines = block.lines().filter(|line| !line.starts_with("kubectl "));
        run(&folder, &lines.map(|line| format!("{line}\n")).collect::<String>());
    }
    let original = yaml(&monitoring::folder().join("rules.yaml"));
    let with_address = yaml(&folder.join("app-health-rules.yaml"));
    let expected = original.to_string().replace(
        "\"runbook_url\":\"docs/",
        "\"runbook_url\":\"https://git.example.com/app-health/blob/main/docs/",
    );
    assert_ne!(expected, original.to_string());
    assert_eq!(with_address.to_string(), expected);
    let wrapped = yaml(&folder.join("prometheus-rule.yaml"));
    assert_eq!(wrapped["kind"], "PrometheusRule");
    assert_eq!(wrapped["spec"], with_address);
}

fn run(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-euc", script]).current_dir(folder).output().expect("a shell");
    assert!(output.status.success(), "{script}{}", String::from_utf8_lossy(&output.stderr));
}
