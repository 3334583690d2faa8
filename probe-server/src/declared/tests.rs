use std::net::IpAddr;

use probe::PluginConfig;

use super::{Action, DeclaredProbes};

fn declared(ip: &str, probers: &str, has_tls: bool) -> Result<DeclaredProbes, String> {
    let config = format!(r#"{{"podIP": "{ip}", "probers": {probers}}}"#);
    let config = PluginConfig::parse(config.as_bytes()).expect("a configuration");
    let sources: [IpAddr; 2] = ["127.0.0.6", "::6"].map(|source| source.parse().expect("an address"));
    DeclaredProbes::new(config, &sources, has_tls).map_err(|error| error.to_string())
}

#[test]
fn probes_over_tls_need_a_build_with_tls() {
    for (prober, needs_tls) in [
        (r#"{"httpGet": {"port": 1}}"#, false),
        (r#"{"httpGet": {"port": 1, "scheme": "HTTPS"}}"#, true),
        (r#"{"grpc": {"port": 1}}"#, false),
        (r#"{"grpc": {"port": 1, "mode": "TLS"}}"#, true),
        (r#"{"tcpSocket": {"port": 1}}"#, false),
    ] {
        let probers = format!(r#"{{"/app-health/a/livez": {prober}}}"#);
        assert!(declared("10.0.0.5", &probers, true).is_ok(), "{prober}");
        let without = declared("10.0.0.5", &probers, false);
        assert_eq!(without.is_err(), needs_tls, "{prober}");
        if let Err(text) = without {
            assert!(
                text.starts_with(r#"probers["/app-health/a/livez"]: this build of the agent has no TLS; "#),
                "{text}"
            );
        }
    }
}

#[test]
fn the_source_has_the_family_of_the_pod() {
    for (ip, source, authority) in
        [("10.0.0.5", "127.0.0.6", "10.0.0.5:80"), ("fd00::5", "::6", "[fd00::5]:80")]
    {
        let probes =
            declared(ip, r#"{"/app-health/a/livez": {"httpGet": {"port": 80}}}"#, false).expect("valid");
        assert_eq!(probes.target.source, Some(source.parse().expect("an address")));
        let probe = probes.get("/app-health/a/livez").expect("declared");
        let Action::HttpGet(request) = &probe.action else { panic!("an httpGet") };
        assert_eq!(request.url.host, authority.as_bytes());
        assert_eq!(probes.pod_ip, ip);
        assert!(probes.get("/app-health/a/readyz").is_none());
    }
}
