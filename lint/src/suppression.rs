//! The annotation with which an object suppresses findings.

use std::collections::BTreeSet;

use injector::pod;
use injector::warning::quote;
use injector::workload::PodLocation;
use serde_json::{Value, json};

use crate::finding::{Finding, Findings};
use crate::rule::{self, UNKNOWN_CODE};

/// The annotation with codes of rules, separated by commas or spaces, on an object or on its Pod
/// template.
pub const IGNORE_ANNOTATION: &str = "app-health.io/lint-ignore";

/// The codes that are suppressed in one Pod.
pub(crate) struct Suppression(BTreeSet<&'static str>);

impl Suppression {
    /// Reads the annotations of the object and of the Pod template. An unknown code is a finding.
    pub(crate) fn read(location: &PodLocation, document: &Value, findings: &mut Findings) -> Self {
        let object = location.object_in(document);
        let pod = location.pod(document);
        let path = pod::annotation_path(IGNORE_ANNOTATION);
        let mut codes = BTreeSet::new();
        let unknown = read_codes(object, &mut codes);
        if !unknown.is_empty() {
            findings.add_object(&UNKNOWN_CODE, &path, unknown_codes(&unknown));
        }
        if let Some(name) = misspelt(object) {
            findings.add_object(&UNKNOWN_CODE, &pod::annotation_path(name), misspelt_text(name));
        }
        if !std::ptr::eq(object, pod) {
            let unknown = read_codes(pod, &mut codes);
            if !unknown.is_empty() {
                findings.add(&UNKNOWN_CODE, &path, unknown_codes(&unknown));
            }
            if let Some(name) = misspelt(pod) {
                findings.add(&UNKNOWN_CODE, &pod::annotation_path(name), misspelt_text(name));
            }
        }
        Self(codes)
    }

    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        self.0.contains(&finding.rule.code)
    }
}

/// Adds the codes in the annotation of an object, and returns the words that are no codes.
fn read_codes(object: &Value, codes: &mut BTreeSet<&'static str>) -> Vec<String> {
    let mut unknown = Vec::new();
    for word in annotated(object) {
        match rule::by_code(&word) {
            Some(rule) => {
                codes.insert(rule.code);
            }
            None => unknown.push(word),
        }
    }
    unknown
}

fn unknown_codes(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| quote(&json!(word))).collect();
    match quoted.as_slice() {
        [word] => format!("{word} is not the code of a rule"),
        words => format!("{} are not codes of rules", words.join(", ")),
    }
}

/// Returns an annotation whose name is similar to that of [`IGNORE_ANNOTATION`].
fn misspelt(object: &Value) -> Option<&str> {
    let annotations = pod::field(pod::field(object, "metadata")?, "annotations")?.as_object()?;
    let letters = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
    };
    let similar = |name: &str| {
        let name = letters(name);
        name.starts_with("apphealth") && (name.contains("lint") || name.contains("ignore"))
    };
    annotations.keys().map(String::as_str).find(|name| *name != IGNORE_ANNOTATION && similar(name))
}

fn misspelt_text(name: &str) -> String {
    format!("the annotation {} has no effect; did you mean {IGNORE_ANNOTATION}?", quote(&json!(name)))
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
