use probe::{Handler, PluginConfig, Request};

use super::bytes;

/// Returns the lines of the request of an `httpGet` with these fields.
fn lines(fields: &str) -> Vec<String> {
    let prober = format!(r#"{{"httpGet": {{"port": 8080, {fields}}}}}"#);
    let config = format!(r#"{{"podIP": "10.0.0.5", "probers": {{"/app-health/a/livez": {prober}}}}}"#);
    let config = PluginConfig::parse(config.as_bytes()).expect("a configuration");
    let (_, prober) = config.probers.iter().next().expect("a prober");
    let Handler::HttpGet(get) = &prober.handler else { panic!("an httpGet") };
    let request = Request::new(get, "10.0.0.5:8080");
    let text = String::from_utf8(bytes(&request, b"kube-probe/1.36")).expect("text");
    let text = text.strip_suffix("\r\n\r\n").expect("an end");
    text.split("\r\n").map(str::to_owned).collect()
}

#[test]
fn requests_as_go_writes_them() {
    for (fields, expected) in [
        (
            r#""path": "/a b?x""#,
            &[
                "GET /a%20b?x HTTP/1.1",
                "Host: 10.0.0.5:8080",
                "User-Agent: kube-probe/1.36",
                "Accept: */*",
                "Connection: close",
            ][..],
        ),
        (
            r#""scheme": "HTTPS", "httpHeaders": [{"name": "x-b", "value": " 2 "}, {"name": "X-a", "value": "1"},
               {"name": "x-B", "value": "3"}, {"name": "host", "value": "shop"}, {"name": "user-agent", "value": ""}]"#,
            &[
                "GET / HTTP/1.1",
                "Host: shop",
                "Accept: */*",
                "X-A: 1",
                "X-B: 2",
                "X-B: 3",
                "Connection: close",
            ],
        ),
        (
            r#""httpHeaders": [{"name": "Connection", "value": "close"}, {"name": "User-Agent", "value": "x"},
               {"name": "Accept", "value": ""}, {"name": "Content-Length", "value": "5"}]"#,
            &["GET / HTTP/1.1", "Host: 10.0.0.5:8080", "User-Agent: x", "Connection: close"],
        ),
    ] {
        assert_eq!(lines(fields), expected, "{fields}");
    }
}
