//! Feeds arbitrary results of the API server to `app-health explain`.

use ::explain::object::ObjectName;
use ::explain::report::Report;
use ::explain::situation::{ProbeResult, Situation};
use ::explain::text;
use injector::yaml_documents;
use serde_json::Value;

/// Explains situations: Pods, events, answers of probes, metrics and logs. The printed text has no control
/// character but line breaks, the report has the verdict of its causes and is JSON.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn explanations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for document in yaml_documents::read(text).into_iter().flatten() {
        let Ok(mut situation) = serde_json::from_value::<Situation>(document.value) else { continue };
        for answer in &mut situation.answers {
            // As the responses of the API server are read.
            if let ProbeResult::Response { status, body } = &answer.result {
                answer.result = ProbeResult::of_response(*status, body);
            }
        }
        let object = ObjectName::parse("pod/web").expect("a name");
        let report = Report::of_pod(object, &situation);
        let explanation = ::explain::explain(&situation);
        assert_eq!(report.verdict, explanation.verdict);
        assert_eq!(explanation, ::explain::explain(&situation), "a pure function");
        let printed = text::render(&report, &situation.now);
        let hidden = |character: char| {
            (character.is_control() && character != '\n') || "\u{202e}\u{2066}\u{200e}".contains(character)
        };
        assert!(!printed.contains(hidden), "{printed:?}");
        let json = serde_json::to_string(&report).expect("the report is JSON");
        let again: Value = serde_json::from_str(&json).expect("the report is JSON");
        assert_eq!(again["verdict"], report.verdict.word());
    }
}
