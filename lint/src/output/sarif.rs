//! Findings in the Static Analysis Results Interchange Format, version 2.1.0.

use serde_json::{Value, json};

use super::Results;
use crate::{Finding, RULES, Rule, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Formats the findings as one SARIF log, with a newline at the end.
pub fn sarif(results: &Results) -> String {
    let rules: Vec<Value> = RULES.iter().map(|rule| descriptor(rule)).collect();
    let results: Vec<Value> = results.findings.iter().map(result).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "app-health",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    printable::json(&format!("{log:#}\n")).into_owned()
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn descriptor(rule: &Rule) -> Value {
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": level(rule.severity)},
    })
}

fn result(finding: &Finding) -> Value {
    let index = RULES.iter().position(|rule| rule.code == finding.rule.code);
    let place = finding.place();
    let place = if place.is_empty() { place } else { format!("{place}: ") };
    let mut location = json!({
        "logicalLocations": [{"fullyQualifiedName": logical_name(finding), "kind": "resource"}],
    });
    if let Some(line) = finding.origin.line {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": uri(&finding.origin.file)},
            "region": {"startLine": line},
        });
    }
    json!({
        "ruleId": finding.rule.code,
        "ruleIndex": index,
        "level": level(finding.rule.severity),
        "message": {"text": format!("{}: {place}{}", finding.object(), finding.message)},
        "locations": [location],
    })
}

/// Returns `namespace/Deployment/shop/spec.template…`, without the parts that are absent.
fn logical_name(finding: &Finding) -> String {
    let object = finding.object();
    let parts = [finding.namespace.as_str(), object.as_str(), finding.path.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// Returns a path as a URI reference: bytes that are not allowed in a path are percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    // A relative path whose first segment has a colon would begin with a scheme.
    if path.split('/').next().is_some_and(|first| first.contains(':')) {
        uri.push_str("./");
    }
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=:@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
