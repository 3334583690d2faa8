use serde_json::json;

use super::*;

#[test]
fn table_entries_contain_no_dollar_sign() {
    let value = json!({"httpGet": {"path": "/$(HOME)/$$/\\$", "port": 8080}, "timeoutSeconds": 1});
    let written = validated_entry("/app-health/app/livez", &value, 15020).expect("an entry");
    assert!(!written.contains('$'), "{written}");
    assert_eq!(serde_json::from_str::<Value>(&written).expect("JSON"), value);
}

#[test]
fn table_entries_keep_their_bytes_and_order() {
    let mut entries = ProberEntries::read(r#"{ "/app-health/b/livez" : {"tcpSocket": {"port" :1}} }"#, 15020)
        .expect("a table");
    entries.insert("/app-health/a/livez".to_owned(), "{}".to_owned());
    assert_eq!(
        entries.text(),
        r#"{"/app-health/a/livez":{},"/app-health/b/livez":{"tcpSocket": {"port" :1}}}"#
    );
}

#[test]
fn tables_that_the_filter_rejects_are_rejected() {
    for (text, words) in [
        ("{", "EOF"),
        ("[]", "must be an object"),
        (r#"{"/x":{}}"#, "must be /app-health/"),
        (r#"{"/app-health/a/livez":{"tcpSocket":{"port":"http"}}}"#, "port = \"http\": must be an integer"),
    ] {
        let error = ProberEntries::read(text, 15020).expect_err(text);
        assert!(error.contains(words), "{error}");
    }
    for nothing in ["", " ", "null", "{}"] {
        assert_eq!(ProberEntries::read(nothing, 15020).expect(nothing).text(), "{}");
    }
}
