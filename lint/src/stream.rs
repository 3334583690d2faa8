//! Applies all rules to a stream of YAML or JSON documents.

use std::collections::BTreeSet;

use injector::skip::{ManifestPods, Skip, SkippedItem};
use injector::yaml_documents::{self, StreamError};

use crate::finding::Origin;
use crate::lines::Lines;
use crate::linter::lint_pods;
use crate::rules::api_version;
use crate::{Finding, Options};

/// The result for one file.
#[derive(Clone, Debug, Default)]
pub struct StreamReport {
    /// The findings, ordered by document and line.
    pub findings: Vec<Finding>,
    /// Findings that an annotation suppresses.
    pub suppressed: usize,
    /// Pods and Pod templates.
    pub pods: usize,
    /// Documents that are Kubernetes objects.
    pub objects: usize,
    /// Documents that cannot be parsed.
    pub errors: Vec<StreamError>,
    /// The numbers of documents that are not linted, with the reason.
    pub skipped: Vec<(usize, Skip)>,
    /// The numbers of documents with items of lists that are not linted.
    pub skipped_items: Vec<(usize, SkippedItem)>,
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
        // A rule reports a kind of Kubernetes that does not exist in the apiVersion.
        let wrong = api_version::wrong_objects(value, &options.kinds);
        let skip = Skip::of(value, &document.parsed, &options.kinds);
        if let Some(skip) = skip.filter(|_| wrong.is_empty()) {
            report.skipped.push((document.number, skip));
            continue;
        }
        report.objects += usize::from(!value.is_null());
        let mut found = ManifestPods::of(value, &options.kinds);
        let reported: BTreeSet<String> = wrong.iter().map(|location| location.object_field("")).collect();
        found.skipped.retain(|item| !reported.contains(&item.field));
        report.skipped_items.extend(found.skipped.into_iter().map(|item| (document.number, item)));
        let linted = lint_pods(value, &wrong, found.pods, options);
        report.suppressed += linted.suppressed;
        report.pods += linted.pods;
        if linted.findings.is_empty() {
            continue;
        }
        let lines = Lines::read(&document.parsed);
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
