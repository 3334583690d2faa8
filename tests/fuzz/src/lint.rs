//! Feeds arbitrary documents to `app-health lint`.

use std::time::Duration;

use injector::kinds::Kinds;
use lint::output::{self, Results};
use lint::{Options, lint_stream};
use serde_json::Value;

/// Lints a stream of documents: each finding has a line of the text and no control character, and
/// the machine-readable outputs are JSON or have one line for each finding.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn lint(bytes: &[u8]) {
    thread_local!(static OPTIONS: Options = Options {
        settings: crate::settings(),
        kinds: Kinds::default(),
        expect_pause: Some(Duration::from_secs(30)),
    });
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let report = OPTIONS.with(|options| lint_stream("fuzz.yaml", text, options));
    let lines = text.split('\n').count();
    for finding in &report.findings {
        let line = finding.origin.line.expect("a file has lines");
        assert!((1..=lines).contains(&line), "{finding:?}: {lines} lines");
        let texts = [&finding.name, &finding.container, &finding.path, &finding.message];
        assert!(texts.iter().all(|text| !text.contains(char::is_control)), "{finding:?}");
    }
    let results = Results { findings: report.findings, pods: report.pods, files: 1, ..Results::default() };
    for text in [output::json(&results), output::sarif(&results)] {
        let _: Value = serde_json::from_str(&text).expect("the output is JSON");
    }
    assert_eq!(output::github(&results).lines().count(), results.findings.len());
    assert!(output::text(&results).lines().count() > 2 * results.findings.len());
}
