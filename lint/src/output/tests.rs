use serde_json::Value;

use super::*;
use crate::{Origin, RULES, rule};

fn finding(file: &str, message: &str) -> Finding {
    Finding {
        rule: &rule::NAMED_PORT,
        origin: Origin { file: file.to_owned(), document: 2, line: Some(12) },
        kind: "Deployment".to_owned(),
        namespace: "prod".to_owned(),
        name: "shop".to_owned(),
        container: "app".to_owned(),
        probe: "livenessProbe".to_owned(),
        path: "spec.template.spec.containers[0].livenessProbe.httpGet.port".to_owned(),
        message: message.to_owned(),
    }
}

/// A finding in a file, and one in a cluster.
fn results() -> Results {
    let cluster = Finding {
        rule: &rule::NO_READINESS,
        origin: Origin::default(),
        probe: String::new(),
        ..finding("", "no probe")
    };
    Results {
        findings: vec![finding("a,b:c.yaml", "100% wrong"), cluster],
        suppressed: 3,
        pods: 1,
        files: 2,
        skipped: vec!["x.yaml: no Kubernetes object".to_owned()],
    }
}

#[test]
fn text_has_two_lines_for_a_finding_and_a_summary() {
    let expected = format!(
        "a,b:c.yaml:12: error: Deployment/shop: app.livenessProbe: 100% wrong (AH001)\n    fix: {}\n\
         namespace prod: warning: Deployment/shop: app: no probe (AH014)\n    fix: {}\n\
         1 error, 1 warning, 0 info, 3 suppressed; 1 Pod in 2 files\n",
        rule::NAMED_PORT.fix,
        rule::NO_READINESS.fix,
    );
    assert_eq!(text(&results()), expected);
}

#[test]
fn json_has_every_field() {
    let document: Value = serde_json::from_str(&json(&results())).expect("JSON");
    let [first, second] = document["findings"].as_array().expect("a list").as_slice() else {
        panic!("{document}");
    };
    for (field, value) in [
        ("code", "AH001"),
        ("rule", "named-port"),
        ("severity", "error"),
        ("file", "a,b:c.yaml"),
        ("kind", "Deployment"),
        ("namespace", "prod"),
        ("name", "shop"),
        ("container", "app"),
        ("probe", "livenessProbe"),
        ("path", "spec.template.spec.containers[0].livenessProbe.httpGet.port"),
        ("message", "100% wrong"),
        ("fix", rule::NAMED_PORT.fix),
    ] {
        assert_eq!(first[field], value, "{field}");
    }
    assert_eq!((&first["line"], &first["document"]), (&12.into(), &2.into()));
    assert_eq!(second["line"], Value::Null);
    let summary = serde_json::json!(
        {"errors": 1, "warnings": 1, "info": 0, "suppressed": 3, "pods": 1, "files": 2}
    );
    assert_eq!(document["summary"], summary);
}

/// Checks what the schema of SARIF 2.1.0 requires of the objects that are used.
#[test]
fn sarif_has_what_its_schema_requires() {
    let log: Value = serde_json::from_str(&sarif(&results())).expect("JSON");
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "app-health");
    let rules = driver["rules"].as_array().expect("a list");
    assert_eq!(rules.len(), RULES.len());
    for rule in rules {
        assert!(rule["id"].is_string(), "{rule}");
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(rule[text]["text"].is_string(), "{rule}");
        }
        let level = rule["defaultConfiguration"]["level"].as_str().expect("a level");
        assert!(["none", "note", "warning", "error"].contains(&level), "{level}");
    }
    let results = run["results"].as_array().expect("a list");
    for result in results {
        assert!(result["message"]["text"].is_string(), "{result}");
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a usize");
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert_eq!(rules[index]["defaultConfiguration"]["level"], result["level"]);
    }
    let physical = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "./a,b:c.yaml");
    assert_eq!(physical["region"]["startLine"], 12);
    let cluster = &results[1]["locations"][0];
    assert_eq!(cluster.get("physicalLocation"), None);
    let name = "prod/Deployment/shop/spec.template.spec.containers[0].livenessProbe.httpGet.port";
    assert_eq!(cluster["logicalLocations"][0]["fullyQualifiedName"], name);
}

#[test]
fn sarif_encodes_paths() {
    let results = Results { findings: vec![finding("dir/ü x%.yaml", "")], ..Results::default() };
    let log: Value = serde_json::from_str(&sarif(&results)).expect("JSON");
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "dir/%C3%BC%20x%25.yaml");
}

#[test]
fn github_escapes_messages_and_properties() {
    let lines = github(&results());
    let lines: Vec<&str> = lines.lines().collect();
    let fix = rule::NAMED_PORT.fix;
    assert_eq!(
        lines[0],
        format!(
            "::error file=a%2Cb%3Ac.yaml,line=12,title=AH001 named-port::Deployment/shop: app.livenessProbe: 100%25 wrong. {fix}"
        )
    );
    assert!(lines[1].starts_with("::warning title=AH014 no-readiness-probe::Deployment/shop: app: no probe"));
    assert_eq!(lines.len(), 2);
}
