//! Findings as workflow commands of GitHub Actions, which shows them beside the changed lines.

use std::fmt::Write as _;

use super::Results;
use crate::Severity;

/// Formats each finding as one line: `::error file=shop.yaml,line=12,title=AH001 named-port::…`.
pub fn github(results: &Results) -> String {
    let mut text = String::new();
    for finding in &results.findings {
        let command = match finding.rule.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        let title = property(&format!("{} {}", finding.rule.code, finding.rule.name));
        let place = match finding.origin.line {
            Some(line) => format!("file={},line={line},", property(&finding.origin.file)),
            None => String::new(),
        };
        let container = finding.place();
        let container = if container.is_empty() { container } else { format!("{container}: ") };
        let message = format!("{}: {container}{}. {}", finding.object(), finding.message, finding.rule.fix);
        let _ = writeln!(text, "::{command} {place}title={title}::{}", data(&message));
    }
    text
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    printable::line(&text).into_owned()
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
