use serde_json::json;

use super::*;

#[test]
fn a_warning_names_container_field_and_code() {
    let warning = Warning::about_field(
        Code::NamedPort,
        "app",
        "livenessProbe",
        "port \"web\" is not a port of this container",
    );
    assert_eq!(
        warning.to_string(),
        "app-health: app.livenessProbe: port \"web\" is not a port of this container (named-port)"
    );
}

#[test]
fn a_quoted_value_is_short_printable_ascii() {
    assert_eq!(quote(&json!("a\r\n\u{1b}[31mé")), "\"a\\r\\n\\u001b[31m\\u{e9}\"");
    assert_eq!(quote(&json!("x".repeat(100))).len(), 64 + 3);
}

#[test]
fn header_values_are_not_printed() {
    let table = r#"{"podIP":"192.0.2.1","probers":{"/app-health/app/livez":{"httpGet":{"port":1,"httpHeaders":
        [{"name":"A","value":"secret\n"}]}}}}"#;
    let error = probe::PluginConfig::parse(table.as_bytes()).expect_err("a header with a line end");
    assert_eq!(
        probe_error(&error, "/app-health/app/livez"),
        "httpGet.httpHeaders[0].value: must not contain CR, LF or NUL"
    );
}
