//! Applies all rules to a stream of YAML or JSON documents.

use injector::yaml_documents::{self, StreamError};
use injector::{pod, workload};
use serde_json::Value;

use crate::finding::Origin;
use crate::lines::Lines;
use crate::{Finding, Options, lint};

/// The result for one file.
#[derive(Clone, Debug, Default)]
pub struct StreamReport {
    /// In the order of documents and lines.
    pub findings: Vec<Finding>,
    /// Findings that an annotation suppresses.
    pub suppressed: usize,
    /// Pods and Pod templates.
    pub pods: usize,
    /// Documents with a `kind` and an `apiVersion`.
    pub objects: usize,
    /// Documents that cannot be parsed.
    pub errors: Vec<StreamError>,
    /// The numbers of documents whose containers contain expressions of a template language.
    pub templates: Vec<usize>,
}

/// Lints all documents of the file `file`.
pub fn lint_stream(file: &str, text: &str, options: &Options) -> StreamReport {
    let mut report = StreamReport::default();
    for document in yaml_documents::read(text) {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                report.errors.push(error);
                continue;
            }
        };
        let value = &document.value;
        if !pod::text(value, "kind").is_empty() && !pod::text(value, "apiVersion").is_empty() {
            report.objects += 1;
        }
        if is_template(value) {
            report.templates.push(document.number);
            continue;
        }
        let linted = lint(value, options);
        report.suppressed += linted.suppressed;
        report.pods += linted.pods;
        if linted.findings.is_empty() {
            continue;
        }
        let lines = Lines::read(document.text);
        let mut findings: Vec<Finding> = linted
            .findings
            .into_iter()
            .map(|finding| {
                let line = document.line + lines.find(&finding.path) - 1;
                let origin = Origin { file: file.to_owned(), document: document.number, line: Some(line) };
                Finding { origin, ..finding }
            })
            .collect();
        findings.sort_by_key(|finding| finding.origin.line);
        report.findings.append(&mut findings);
    }
    report
}

/// Returns true if a container contains an expression of a template language, such as
/// `port: "{{ .Values.port }}"`: the values are not known.
fn is_template(document: &Value) -> bool {
    let locations = workload::find_pods(document).unwrap_or_default();
    let pods = locations.iter().map(|location| &location.pod(document)["spec"]);
    let lists = pods.flat_map(|spec| ["initContainers", "containers"].map(|list| &spec[list]));
    let containers = lists.filter_map(Value::as_array).flatten();
    containers
        .flat_map(|container| {
            ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"]
                .map(|field| &container[field])
        })
        .any(has_expression)
}

fn has_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(elements) => elements.iter().any(has_expression),
        Value::Object(fields) => fields.values().any(has_expression),
        _ => false,
    }
}
