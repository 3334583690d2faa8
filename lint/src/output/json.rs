//! Writes findings as JSON.

use serde_json::{Value, json};

use super::Results;
use crate::{Finding, Severity};

/// Formats the findings as one JSON object, with a newline at the end.
pub fn json(results: &Results) -> String {
    let findings: Vec<Value> = results.findings.iter().map(finding).collect();
    let count = |severity| results.count(severity);
    let document = json!({
        "findings": findings,
        "skipped": results.skipped,
        "summary": {
            "errors": count(Severity::Error),
            "warnings": count(Severity::Warning),
            "info": count(Severity::Info),
            "suppressed": results.suppressed,
            "pods": results.pods,
            "files": results.files,
        },
    });
    printable::json(&format!("{document:#}\n")).into_owned()
}

fn finding(finding: &Finding) -> Value {
    let Finding { rule, origin, kind, namespace, name, container, probe, path, message } = finding;
    json!({
        "code": rule.code,
        "rule": rule.name,
        "severity": rule.severity.word(),
        "file": origin.file,
        "document": origin.document,
        "line": origin.line,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "container": container,
        "probe": probe,
        "path": path,
        "message": message,
        "fix": rule.fix,
    })
}
