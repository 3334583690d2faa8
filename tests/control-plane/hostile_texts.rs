//! Names of files, objects and containers cannot write to the terminal of a user.

use std::fs;

use serde_json::{Value, json};

use crate::explain_support::{ApiServer, Routes, Scripted};
use crate::inject::{Ended, Folder, run};

/// The title of a window, colors in two forms, a line break, and marks that reorder a text.
const HOSTILE: [&str; 5] = [
    "a\u{1b}]0;title\u{7}",
    "a\u{1b}[2Jb",
    "a\u{9b}31mb\u{7f}",
    "a\napp-health: forged\u{2028}",
    "a\u{202e}b\u{2066}c\u{200f}d\u{61c}",
];

fn is_unsafe(char: char) -> bool {
    char.is_control() && char != '\n' && char != '\t'
        || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn assert_is_safe(command: &str, text: &str) {
    assert!(!text.contains(is_unsafe), "{command}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("app-health: forged")), "{command}: {text}");
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": name}, "spec": {"containers": [
        {"name": name, "image": "shop", "livenessProbe": {"tcpSocket": {"port": name, "host": name}}},
    ]}})
}

#[test]
fn names_reach_no_terminal() {
    for (index, hostile) in HOSTILE.iter().enumerate() {
        let file = format!("{hostile}.yaml");
        let manifest = format!("{}\n---\n{{\n---\n{}\n", pod(hostile), json!({"kind": hostile, "spec": 1}));
        let folder = Folder::new(&format!("hostile-{index}"), &[(&file, &manifest)]);
        let missing = format!("-f{hostile}");
        // A message of clap has several lines.
        let flag = format!("--{}", hostile.replace('\n', ""));
        for (command, arguments) in [
            ("inject", &["-f", &file, "--dry-run"][..]),
            ("inject", &["-f", &file, "--diff"]),
            ("inject", &["-f", &file, "--diff", "--color=never"]),
            ("inject", &[&missing]),
            ("inject", &[&flag]),
            ("lint", &["-f", &file]),
            ("lint", &["-f", &file, "--format", "github"]),
            ("lint", &[&missing]),
            ("explain", &[hostile]),
            ("workloads", &["--url", hostile]),
        ] {
            let Ended { stdout, stderr, .. } = run(command, &folder.0, arguments, "");
            let command = format!("{command} {arguments:?}");
            assert_is_safe(&command, &stdout);
            assert_is_safe(&command, &stderr);
            assert!(!stdout.is_empty() || !stderr.is_empty(), "{command}");
        }
        for format in ["json", "sarif"] {
            let stdout = run("lint", &folder.0, &["-f", &file, "--format", format], "").stdout;
            assert_is_safe(format, &stdout);
            let value: Value = serde_json::from_str(&stdout).expect("JSON");
            if format == "json" {
                assert_eq!(value["findings"][0]["file"], file, "JSON has the name itself");
            }
        }
        assert_eq!(fs::read_to_string(folder.0.join(&file)).expect("a file"), manifest);
    }
}

#[test]
fn messages_of_a_cluster_reach_no_terminal() {
    let hostile = HOSTILE.concat();
    let mut value = pod("web");
    value["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "web", "ready": false,
        "restartCount": 0, "image": "shop", "imageID": "",
        "state": {"waiting": {"reason": hostile, "message": hostile}}}]});
    let event = json!({"type": "Warning", "reason": hostile, "message": hostile, "count": 1,
        "lastTimestamp": "2026-03-01T12:00:00Z", "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{web}"}});
    let routes = Routes::from([
        ("/api/v1/namespaces/shop/pods/web".to_owned(), Scripted::object(&value)),
        ("/api/v1/namespaces/shop/events".to_owned(), Scripted::list(&[event])),
    ]);
    let server = ApiServer::start("hostile", routes);
    for arguments in [&["pod/web"][..], &["pod/web", "--output", "json"]] {
        let (_, text, errors) = server.explain(arguments);
        assert!(text.contains("]0;title"), "{text}");
        assert_is_safe("explain", &text);
        assert_is_safe("explain", &errors);
    }
}
