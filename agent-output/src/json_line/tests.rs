use serde_json::{Value, json};

use super::*;

fn parsed(line: &str) -> Value {
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?}");
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

#[test]
fn a_message_of_the_agent() {
    let line = parsed(&of_agent("ERROR", "a \"quoted\"\nmessage\u{1b}[0m"));
    assert_eq!(line["fields"], json!({"message": "a \"quoted\"\nmessage\u{1b}[0m"}));
    assert_eq!((&line["level"], &line["target"]), (&json!("ERROR"), &json!("app_health_agent")));
    assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
}

/// Each row has a line of Envoy, and level, target and message of the JSON line.
#[test]
fn lines_of_envoy() {
    let mut lines = EnvoyLines::default();
    for (raw, level, target, message) in [
        ("envoy: error while loading shared libraries: libx.so", "ERROR", "envoy", ""),
        (
            "[2026-01-31 10:20:30.400][12][info][main] [source/server/server.cc:430] started",
            "INFO",
            "envoy::main",
            "[source/server/server.cc:430] started",
        ),
        ("  continues the line before", "INFO", "envoy", ""),
        (
            "[2026-01-31 10:20:30.400][12][critical][backtrace] [a.h:1] #0: x [0x1]",
            "ERROR",
            "envoy::backtrace",
            "[a.h:1] #0: x [0x1]",
        ),
        ("#1: __libc_start_main", "ERROR", "envoy", ""),
        ("[2026-01-31 10:20:30.400][12][warning][config] ", "WARN", "envoy::config", ""),
        ("[a][b][c][d] no level", "WARN", "envoy", ""),
        ("[", "WARN", "envoy", ""),
        ("{not JSON}", "WARN", "envoy", ""),
        ("{\"half\":", "WARN", "envoy", ""),
        ("17", "WARN", "envoy", ""),
        ("\"text\"", "WARN", "envoy", ""),
        ("\u{1}\u{7f}\\ \u{2028}\"", "WARN", "envoy", ""),
    ] {
        let line = parsed(&lines.convert(raw.as_bytes()).unwrap());
        let is_default = message.is_empty() && !raw.ends_with("[config] ");
        let message = if is_default { raw } else { message };
        assert_eq!(line["fields"]["message"], message, "{raw}");
        assert_eq!((&line["level"], &line["target"]), (&json!(level), &json!(target)), "{raw}");
    }
    let line = parsed(&lines.convert(b"[t][12][debug][x] m").unwrap());
    assert_eq!(line["fields"], json!({"message": "m", "time": "t", "thread": "12"}));
}

#[test]
fn objects_are_unchanged_and_empty_lines_dropped() {
    let mut lines = EnvoyLines::default();
    assert_eq!(lines.convert(b"{\"a\": 1}\r").as_deref(), Some("{\"a\": 1}\n"));
    assert_eq!((lines.convert(b""), lines.convert(b" \t\r")), (None, None));
    for raw in [b"\xff\xfe".as_slice(), b"{\"a\": \"\xff\"}", b"{\"a\": 1} {}", b"\0"] {
        assert!(parsed(&lines.convert(raw).unwrap())["fields"]["message"].is_string(), "{raw:?}");
    }
}

proptest::proptest! {
    #[test]
    fn every_line_becomes_json(raw: Vec<u8>) {
        let raw: Vec<u8> = raw.into_iter().filter(|byte| *byte != b'\n').collect();
        if let Some(line) = EnvoyLines::default().convert(&raw) {
            parsed(&line);
        }
    }
}
