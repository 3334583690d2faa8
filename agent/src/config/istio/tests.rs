use super::*;

#[test]
fn go_durations() {
    for (text, millis) in [
        ("5s", Some(5000)),
        ("1m30s", Some(90_000)),
        ("500ms", Some(500)),
        ("1.5h", Some(5_400_000)),
        ("0", Some(0)),
        ("0s", Some(0)),
        ("", None),
        ("5", None),
        ("-5s", None),
        ("5 s", None),
        ("5d", None),
        ("1e3s", None),
        ("..s", None),
    ] {
        assert_eq!(go_duration(text), millis.map(Duration::from_millis), "{text:?}");
    }
}

#[test]
fn annotations() {
    let pairs = |json: &str| serde_json::from_str::<PrometheusAnnotations>(json).unwrap().pairs();
    let pair = |port: &str, path: &str| (port.to_owned(), path.to_owned());
    assert_eq!(pairs(r#"{"scrape": "false", "port": "8080"}"#), []);
    assert_eq!(pairs("{}"), [pair("80", "/metrics")]);
    let all = r#"{"scrape":"true","port":"8080","path":"/m","targets":[{"port":"9100","path":"/custom"},{"port":"9"}]}"#;
    assert_eq!(pairs(all), [pair("8080", "/m"), pair("9100", "/custom"), pair("9", "/metrics")]);
}
