use super::*;

#[test]
fn annotations() {
    let targets = |json: &str| serde_json::from_str::<PrometheusAnnotations>(json).unwrap().targets();
    let pair = |port: &str, path: &str| (port.to_owned(), path.to_owned());
    assert_eq!(targets(r#"{"scrape": "false", "port": "8080"}"#), []);
    assert_eq!(targets("{}"), [pair("80", "/metrics")]);
    let all = r#"{"scrape":"true","port":"8080","path":"/m","targets":[{"port":"9100","path":"/custom"},{"port":"9"}]}"#;
    assert_eq!(targets(all), [pair("8080", "/m"), pair("9100", "/custom"), pair("9", "/metrics")]);
    for json in [
        r#"{"scrape": true, "port": 8080, "path": "m"}"#,
        r#"{"scrape": "true", "port": " 8080", "path": "/m ", "targets": null}"#,
        r#"{"scrape": null, "port": "8080", "path": "m", "targets": []}"#,
    ] {
        assert_eq!(targets(json), [pair("8080", "/m")], "{json}");
    }
    assert_eq!(targets(r#"{"scrape": false, "port": 8080}"#), []);
    let odd = r#"{"port": 8080, "targets": [{"port": 0, "path": "?a=b"}, {"port": "x", "path": null}]}"#;
    assert_eq!(targets(odd), [pair("8080", "/metrics"), pair("0", "/?a=b"), pair("x", "/metrics")]);
    assert!(serde_json::from_str::<PrometheusAnnotations>(r#"{"port": [8080]}"#).is_err());
}
