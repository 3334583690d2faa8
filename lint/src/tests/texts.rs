//! The texts of the rules are sentences, and findings cannot write to a terminal.

use super::{lint_example, options};
use crate::{RULES, lint_stream};

#[test]
fn texts_of_rules_are_sentences() {
    for rule in RULES.iter() {
        let code = rule.code;
        assert!(!rule.title.ends_with('.') && !rule.title.contains('|'), "{code}");
        assert!(
            rule.title
                .starts_with(|char: char| char.is_ascii_lowercase() || rule.title.starts_with("periodS")),
            "{code}"
        );
        for text in [rule.why, rule.fix] {
            assert!(text.ends_with(['.', '"']) && !text.contains(['|', '\n']), "{code}: {text}");
            assert!(!text.contains("  "), "{code}: {text}");
        }
    }
}

#[test]
fn control_characters_are_escaped() {
    let text = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\u001b[31m", "namespace": "\u0007"},
        "spec": {"containers": [{"name": "b\n", "image": "c", "readinessProbe": {"httpGet": {"port": "\u001b"}}}]}}"#;
    let report = lint_example(text);
    assert!(!report.findings.is_empty());
    for finding in &report.findings {
        let texts = [&finding.name, &finding.namespace, &finding.container, &finding.path, &finding.message];
        assert!(texts.iter().all(|text| !text.contains(char::is_control)), "{finding:?}");
    }
}

#[test]
fn an_object_without_a_name_has_findings() {
    let text = "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - image: x\n";
    let report = lint_stream("x.yaml", text, &options(""));
    let finding = report.findings.first().expect("a container without a name");
    assert_eq!((finding.object().as_str(), finding.rule.code), ("Pod", "AH112"));
}
