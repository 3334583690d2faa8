//! The charts in `charts/` have the version of the workspace, copies of shipped files that are equal to them, a
//! schema for each value, and a table of their values.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kit::golden::assert_generated;
use kit::monitoring::yaml;
use probe::ports::PROXY_PORTS;
use serde_json::{Map, Value, json};

use crate::root;

/// Each chart, with the least number of groups in its schema, and of values.
const CHARTS: [(&str, usize, usize); 2] = [("app-health", 21, 81), ("app-health-istio", 2, 6)];

fn chart(name: &str) -> PathBuf {
    root().join("charts").join(name)
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
fn charts_have_the_version_of_the_workspace() {
    for (name, ..) in CHARTS {
        let chart = yaml(&chart(name).join("Chart.yaml"));
        for field in ["version", "appVersion"] {
            assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{name}: {field}");
        }
    }
}

#[test]
fn every_chart_is_tested() {
    let folders = fs::read_dir(root().join("charts")).expect("a folder");
    let names = folders.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    assert_eq!(names.collect::<BTreeSet<_>>(), CHARTS.map(|(name, ..)| name.to_owned()).into());
}

/// The default of the port for probes is one of the proxy's ports.
#[test]
fn the_status_port_is_no_other_port_of_the_proxy() {
    let schema: Value = serde_json::from_str(&read(&chart("app-health").join("values.schema.json")))
        .expect("a JSON document");
    let rejected = schema.pointer("/properties/webhook/properties/settings/properties/statusPort/not/enum");
    let others: Vec<u16> = PROXY_PORTS.into_iter().filter(|port| *port != 15020).collect();
    assert_eq!(rejected, Some(&json!(others)));
}

/// A template of a chart can only read files of the chart.
#[test]
fn copies_of_shipped_files_are_equal() {
    for (copy, original) in
        [("rules.yaml", "monitoring/rules.yaml"), ("crds.yaml", "kubernetes/discovery/crds.yaml")]
    {
        let original = read(&root().join("envoy-config").join(original));
        assert_generated(chart("app-health").join("files").join(copy), &original);
    }
}

/// Each value has a type in the schema, and each type a documented value. Helm itself checks that the
/// defaults have these types.
#[test]
fn the_schema_has_exactly_the_documented_values() {
    for (name, least, _) in CHARTS {
        let schema = read(&chart(name).join("values.schema.json"));
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let values = yaml(&chart(name).join("values.yaml"));
        let mut groups = 0;
        compare("", &schema, &schema, &values, &mut groups);
        assert!(groups >= least, "{name}: {groups} groups");
    }
}

fn compare(path: &str, root: &Value, schema: &Value, value: &Value, groups: &mut usize) {
    let schema = match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => root.pointer(pointer).unwrap_or_else(|| panic!("{path}: {pointer} is missing")),
        None => schema,
    };
    let is_group =
        schema["properties"].is_object() && value.as_object().is_some_and(|value| !value.is_empty());
    if !is_group {
        return;
    }
    *groups += 1;
    assert_eq!(schema["additionalProperties"], false, "{path}: unknown values are accepted");
    let names = |map: &Map<String, Value>| map.keys().cloned().collect::<BTreeSet<String>>();
    let (properties, fields) = (&schema["properties"], value.as_object().expect("a group"));
    let mut expected = names(properties.as_object().expect("properties"));
    if path.is_empty() {
        // For charts that contain this one.
        expected.remove("global");
        expected.remove("enabled");
    }
    assert_eq!(names(fields), expected, "{path}");
    for (name, field) in fields {
        compare(&format!("{path}/{name}"), root, &properties[name], field, groups);
    }
}

/// The table in the README of a chart is that of values.yaml and its comments.
#[test]
fn tables_of_values_are_complete() {
    const BEGIN: &str = "| value | default | meaning |\n| --- | --- | --- |\n";
    for (name, _, least) in CHARTS {
        let readme = chart(name).join("README.md");
        let text = read(&readme);
        let (before, rest) = text.split_once(BEGIN).expect("a table of values");
        let (_, after) = rest.split_once("\n\n").expect("text after the table");
        let table = table(&read(&chart(name).join("values.yaml")));
        assert!(table.lines().count() >= least, "{name}: {table}");
        assert_generated(&readme, &format!("{before}{BEGIN}{table}\n{after}"));
    }
}

/// Returns the rows of a table of values. Each value is on one line after its comment; a line without
/// a value begins a group.
fn table(values: &str) -> String {
    let mut groups: BTreeMap<usize, &str> = BTreeMap::new();
    let mut meaning: Vec<&str> = Vec::new();
    let mut rows = String::new();
    // The first comment describes the file.
    let (_, values) = values.split_once("\n\n").expect("a comment of the file");
    for line in values.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(comment) = text.strip_prefix("# ") {
            meaning.push(comment);
            continue;
        }
        let (name, default) = text.split_once(':').unwrap_or_else(|| panic!("no value: {line}"));
        groups.retain(|depth, _| *depth < indent);
        if default.is_empty() {
            groups.insert(indent, name);
            assert!(meaning.is_empty(), "{name}: a comment of a group is not in the table");
            continue;
        }
        let path: String = groups.values().flat_map(|group| [group, "."]).chain([name]).collect();
        assert!(!meaning.is_empty(), "{path}: has no comment");
        let default = default.trim();
        rows.push_str(&format!("| `{path}` | `{default}` | {} |\n", meaning.join(" ").replace('|', "\\|")));
        meaning.clear();
    }
    rows
}

#[test]
fn a_table_has_the_whole_path_of_each_value() {
    let values = "# File\n\na:\n  # One\n  b: 1\n  c:\n    # Two\n    # lines\n    d: {}\n# Three\ne: \"\"\n";
    let expected = "| `a.b` | `1` | One |\n| `a.c.d` | `{}` | Two lines |\n| `e` | `\"\"` | Three |\n";
    assert_eq!(table(values), expected);
}
