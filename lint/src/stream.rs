//! Applies all rules to a stream of YAML or JSON documents.

use injector::pod;
use injector::workload::{self, MalformedObject, PodLocation};
use injector::yaml_documents::{self, StreamError};
use serde_json::Value;

use crate::finding::Origin;
use crate::lines::Lines;
use crate::path::{self, Step};
use crate::{Finding, Options, lint};

/// The result for one file.
#[derive(Clone, Debug, Default)]
pub struct StreamReport {
    /// The findings, ordered by document and line.
    pub findings: Vec<Finding>,
    /// Findings that an annotation suppresses.
    pub suppressed: usize,
    /// Pods and Pod templates.
    pub pods: usize,
    /// Documents with a `kind` and an `apiVersion`.
    pub objects: usize,
    /// Documents that cannot be parsed.
    pub errors: Vec<StreamError>,
    /// The numbers of documents that are not linted, with the reason.
    pub skipped: Vec<(usize, Skip)>,
}

/// Why a document is not linted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A container contains an expression of a template language.
    Template,
    /// A workload without a Pod template, or without any image: a patch of kustomize.
    Patch,
}

impl Skip {
    /// Returns the reason with advice.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Template => "a template; lint the output of helm template",
            Self::Patch => "a patch, without Pod template or image; lint the output of kustomize build",
        }
    }

    fn of(document: &Value) -> Option<Self> {
        let locations = workload::locate_pods(document);
        let mut specs = locations.iter().flatten().map(|location| &location.pod(document)["spec"]);
        if specs.any(|spec| containers(spec).any(has_expression)) {
            return Some(Self::Template);
        }
        let is_part = |location: &Result<PodLocation, MalformedObject>| match location {
            Ok(location) => is_patch(&location.pod(document)["spec"]),
            Err(malformed) => {
                let field = &malformed.error.field;
                !field.ends_with(']') && is_absent(document, field)
            }
        };
        (!locations.is_empty() && locations.iter().all(is_part)).then_some(Self::Patch)
    }
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers"].into_iter().flat_map(|list| pod::list(spec, list))
}

/// Returns true if a Pod has no containers, or none with an image.
fn is_patch(spec: &Value) -> bool {
    let has_other_type = pod::field(spec, "containers").is_some_and(|containers| !containers.is_array());
    !has_other_type && !containers(spec).any(|container| pod::field(container, "image").is_some())
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
        let kind = pod::text(value, "kind");
        let is_object = !kind.is_empty() && !pod::text(value, "apiVersion").is_empty();
        if is_object || workload::api_version(kind).is_some() {
            report.objects += 1;
        }
        if let Some(skip) = Skip::of(value) {
            report.skipped.push((document.number, skip));
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

/// Returns true if the document has no field at this path.
fn is_absent(document: &Value, field: &str) -> bool {
    let found = path::steps(field).into_iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    });
    found.is_none_or(Value::is_null)
}

/// Returns true if a port, probe or hook of the container contains an expression of a template
/// language, such as `port: "{{ .Values.port }}"`: its value is not known.
fn has_expression(container: &Value) -> bool {
    let fields = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
    fields.into_iter().any(|field| contains_expression(&container[field]))
}

fn contains_expression(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(elements) => elements.iter().any(contains_expression),
        Value::Object(fields) => fields.values().any(contains_expression),
        _ => false,
    }
}
