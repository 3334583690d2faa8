use std::time::Duration;

use serde_json::{Value, json};

use super::{read, write};
use crate::oracle::{Answer, AskError, ProbeResult, Question};

#[test]
fn a_request_is_one_line() {
    let handler = json!({"httpGet": {"port": 80, "path": "/a\nb"}});
    let ip = "::1".parse().expect("an address");
    let question = Question { repeat: 3, ..Question::once(ip, Duration::from_millis(1500), handler.clone()) };
    let line = write(7, &question);
    assert_eq!(line.find('\n'), Some(line.len() - 1));
    let value: Value = serde_json::from_str(&line).expect("JSON");
    let expected = json!({
        "id": "7", "podIP": "::1", "timeoutSeconds": 1.5, "handler": handler, "repeat": 3, "warmUp": 0,
    });
    assert_eq!(value, expected);
}

#[test]
fn one_probe_counts_as_one_result() {
    let line = r#"{"id":"7","result":"unknown","output":"","error":"no port","latenciesMicroseconds":[1.5]}"#;
    let answer = Answer {
        result: ProbeResult::Unknown,
        output: String::new(),
        error: Some("no port".into()),
        latencies: vec![Duration::from_nanos(1500)],
        results: [(ProbeResult::Unknown, 1)].into(),
    };
    assert_eq!(read(line), (Some(7), Ok(answer)));
}

#[test]
fn many_probes_are_counted() {
    let line = r#"{"id":"0","result":"success","output":"ok","latenciesMicroseconds":[1,2,3],"results":{"success":2,"failure":1}}"#;
    let (id, answer) = read(line);
    let answer = answer.expect("an answer");
    assert_eq!((id, answer.latencies.len(), answer.error), (Some(0), 3, None));
    assert_eq!(answer.results, [(ProbeResult::Success, 2), (ProbeResult::Failure, 1)].into());
}

#[test]
fn an_invalid_response_is_an_error() {
    let fault = |text: &str| Err(AskError::Fault(text.into()));
    assert_eq!(read(r#"{"id":"3","fault":"no handler"}"#), (Some(3), fault("no handler")));
    assert_eq!(read(r#"{"id":null,"fault":"no JSON"}"#), (None, fault("no JSON")));
    for line in ["", "panic: oh", r#"{"id":"3","result":"fine","output":"","latenciesMicroseconds":[]}"#] {
        assert_eq!(read(line).1, Err(AskError::Unreadable(line.into())));
    }
}
