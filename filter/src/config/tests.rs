use std::rc::Rc;

use super::Config;

fn config(pod_ip: &str) -> Config {
    let text = format!(
        r#"{{"podIP":"{pod_ip}","reservedPorts":[19000],"clusters":{{"grpc":"mine"}},"probers":{{
            "/app-health/app/livez":{{"tcpSocket":{{"port":5432,"host":"x"}}}},
            "/app-lifecycle/app/prestopz":{{"httpGet":{{"port":80}}}}}}}}"#
    );
    Config::parse(text.as_bytes()).expect("a configuration")
}

#[test]
fn addresses_with_and_without_brackets() {
    for (written, pod_ip, pod_host) in [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5"),
        ("fd00::5", "fd00::5", "[fd00::5]"),
        ("FD00:0:0::5", "fd00::5", "[fd00::5]"),
        ("::ffff:10.0.0.5", "::ffff:10.0.0.5", "[::ffff:10.0.0.5]"),
    ] {
        let config = config(written);
        assert_eq!((config.pod_ip.as_str(), config.pod_host.as_str()), (pod_ip, pod_host));
    }
}

#[test]
fn probes_by_their_exact_path() {
    let config = config("10.0.0.5");
    for (path, found) in [
        ("/app-health/app/livez", true),
        ("/app-lifecycle/app/prestopz", true),
        ("/app-health/app/readyz", false),
        ("/app-health/app/livez/", false),
        ("/app-health/app/livez?x", false),
        ("/APP-health/app/livez", false),
        ("", false),
    ] {
        let probe = config.probe(path.as_bytes()).map(|probe| probe.plan.path.to_string());
        assert_eq!(probe, found.then(|| path.to_owned()), "{path}");
    }
    let all: Vec<_> = config.probes().map(|probe| probe.plan.path.to_string()).collect();
    assert_eq!(all, ["/app-health/app/livez", "/app-lifecycle/app/prestopz"]);
    assert_eq!(config.probes().map(Rc::strong_count).sum::<usize>(), 2, "no other references");
    assert!(config.proxy_ports.contains(19000));
    assert_eq!((config.clusters.grpc.as_str(), config.warnings.len()), ("mine", 1));
}

#[test]
fn invalid_configurations_are_rejected() {
    for (text, expected) in [
        ("{", r#"configuration = "{": EOF while parsing an object at line 1 column 1"#),
        (
            r#"{"podIP":"10.0.0.5","probers":{"/app-health/a/livez":{"grpc":{"port":1}},"/app-health/b/livez":null}}"#,
            r#"probers["/app-health/b/livez"] = null: must be an object"#,
        ),
    ] {
        assert_eq!(Config::parse(text.as_bytes()).expect_err(text).to_string(), expected);
    }
    assert_eq!(Config::parse(b"").expect("nothing declared").probes().count(), 0);
}
