use super::*;

#[test]
fn annotations() {
    let targets = |json: &str| serde_json::from_str::<PrometheusAnnotations>(json).unwrap().targets();
    let pair = |port: &str, path: &str| (port.to_owned(), path.to_owned());
    assert_eq!(targets(r#"{"scrape": "false", "port": "8080"}"#), []);
    assert_eq!(targets("{}"), [pair("80", "/metrics")]);
    let all = r#"{"scrape":"true","port":"8080","path":"/m","targets":[{"port":"9100","path":"/custom"},{"port":"9"}]}"#;
    assert_eq!(targets(all), [pair("8080", "/m"), pair("9100", "/custom"), pair("9", "/metrics")]);
}
