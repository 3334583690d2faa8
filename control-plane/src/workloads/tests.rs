use serde_json::json;

use super::*;

#[test]
fn ages_are_formatted_like_kubectl() {
    for (milliseconds, expected) in
        [(0, "0s"), (8120, "8s"), (119_999, "119s"), (120_000, "2m"), (7_200_000, "2h"), (172_800_000, "2d")]
    {
        assert_eq!(age(milliseconds), expected);
    }
}

#[test]
fn each_workload_and_error_is_one_line() {
    let view = json!({
        "configErrors": ["groups.yaml:14: document 2: spec.probe: must not be empty"],
        "workloads": [
            {"namespace": "shop", "name": "payments-10.0.0.7", "group": "payments", "address": "10.0.0.7",
             "endpoint": "removed", "why": "condition False",
             "condition": {"status": "False", "message": "HTTP status 503"}, "agent": {"lastReportAgoMs": 8120}},
            {"namespace": "shop", "name": "db", "group": null, "address": "10.0.0.8", "endpoint": "served",
             "why": "no health checks", "condition": null, "agent": null},
        ],
    });
    let lines: Vec<Vec<String>> = table(&view)
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect())
        .collect();
    let expected: [&[&str]; 4] = [
        &COLUMNS,
        &[
            "shop",
            "payments-10.0.0.7",
            "payments",
            "10.0.0.7",
            "removed",
            "False",
            "condition False: HTTP status 503",
            "8s",
        ],
        &["shop", "db", "<none>", "10.0.0.8", "served", "<none>", "no health checks", "<none>"],
        &["error: groups.yaml:14: document 2: spec.probe: must not be empty"],
    ];
    assert_eq!(lines, expected);
    assert_eq!(table(&json!({"workloads": []})), "No workloads found.\n");
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let hostile = "a\u{1b}[2J\n\u{9b}b\u{202e}";
    let view = json!({
        "configErrors": [hostile],
        "selfPreservingServices": [hostile],
        "workloads": [{"namespace": hostile, "name": hostile, "group": hostile, "address": hostile,
            "endpoint": hostile, "why": hostile, "condition": {"status": hostile, "message": hostile}}],
    });
    let text = table(&view);
    assert_eq!(text.matches("a\\u{1b}[2J\\n\\u{9b}b\\u{202e}").count(), 10, "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains(|char: char| char.is_control() && char != '\n' || char == '\u{202e}'), "{text}");
}
