//! Findings as lines for people.

use std::fmt::Write as _;

use super::Results;
use crate::{Finding, Severity};

/// Formats each finding in two lines, and a summary in the last line:
///
/// ```text
/// shop.yaml:12: error: Deployment/shop: app.livenessProbe: port "web" is not … (AH001)
///     fix: Declare a port of this name …
/// ```
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    for finding in &results.findings {
        let severity = finding.rule.severity.word();
        let place = finding.place();
        let place = if place.is_empty() { place } else { format!("{place}: ") };
        let _ = writeln!(
            text,
            "{}: {severity}: {}: {place}{} ({})\n    fix: {}",
            position(finding),
            finding.object(),
            finding.message,
            finding.rule.code,
            finding.rule.fix,
        );
    }
    let [errors, warnings, infos] =
        [Severity::Error, Severity::Warning, Severity::Info].map(|severity| results.count(severity));
    let files = match results.files {
        0 => String::new(),
        files => format!(" in {}", plural(files, "file")),
    };
    let _ = writeln!(
        text,
        "{}, {}, {infos} info, {} suppressed; {}{files}",
        plural(errors, "error"),
        plural(warnings, "warning"),
        results.suppressed,
        plural(results.pods, "Pod"),
    );
    text
}

/// Returns `shop.yaml:12`, or the namespace for an object of the cluster.
fn position(finding: &Finding) -> String {
    match finding.origin.line {
        Some(line) => format!("{}:{line}", printable::line(&finding.origin.file)),
        None => format!("namespace {}", finding.namespace),
    }
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
