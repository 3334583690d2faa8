//! The annotation with which an object suppresses findings.

use injector::pod;
use injector::warning::quote;
use injector::workload::PodLocation;
use serde_json::{Value, json};

use crate::finding::{Finding, Findings};
use crate::path;
use crate::rule::{self, UNKNOWN_CODE};

/// The annotation with codes of rules, separated by commas or spaces, on an object or on its Pod
/// template.
pub const IGNORE_ANNOTATION: &str = "app-health.io/lint-ignore";

/// The codes that are suppressed in one Pod.
pub(crate) struct Suppression(Vec<&'static str>);

impl Suppression {
    /// Reads the annotations of the object and of the Pod template. An unknown code is a finding.
    pub(crate) fn read(location: &PodLocation, document: &Value, findings: &mut Findings) -> Self {
        let object = location.object_in(document);
        let pod = location.pod(document);
        let path = path::annotation(IGNORE_ANNOTATION);
        let mut codes = Vec::new();
        for code in annotated(object) {
            match rule::by_code(code.as_ref()) {
                Some(rule) => codes.push(rule.code),
                None => findings.add_object(&UNKNOWN_CODE, &path, unknown(&code)),
            }
        }
        if !std::ptr::eq(object, pod) {
            for code in annotated(pod) {
                match rule::by_code(code.as_ref()) {
                    Some(rule) => codes.push(rule.code),
                    None => findings.add(&UNKNOWN_CODE, &path, unknown(&code)),
                }
            }
        }
        Self(codes)
    }

    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        self.0.contains(&finding.rule.code)
    }
}

fn unknown(code: &str) -> String {
    format!("{} is not the code of a rule", quote(&json!(code)))
}

/// Returns the words in the annotation of an object. A value that is not a string is one word.
fn annotated(object: &Value) -> Vec<String> {
    match pod::annotation(object, IGNORE_ANNOTATION) {
        None => Vec::new(),
        Some(Value::String(text)) => {
            let words = text.split(|char: char| char == ',' || char.is_whitespace());
            words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        Some(other) => vec![other.to_string()],
    }
}
