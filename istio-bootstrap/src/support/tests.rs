use serde_json::json;

use super::*;

fn found(words: &[&str], variables: &[(&str, &str)], layer: serde_json::Value) -> Option<String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut config = ProxyConfig::default();
    config.merge(&layer).unwrap();
    let variable = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    unsupported(&ProxyCommand::parse(&words).unwrap(), variable, &config).map(|found| found.to_string())
}

/// The variables of the injection template.
#[test]
fn an_ordinary_sidecar_is_supported() {
    let variables = [
        ("PILOT_CERT_PROVIDER", "istiod"),
        ("CA_ADDR", "istiod.istio-system.svc:15012"),
        ("ISTIO_META_DNS_CAPTURE", "false"),
        ("COMPLIANCE_POLICY", ""),
        ("WORKLOAD_IDENTITY_SOCKET_FILE", "socket"),
    ];
    assert_eq!(found(&["sidecar"], &variables, json!({})), None);
}

#[test]
fn the_setting_that_is_not_supported_is_named() {
    for (words, variables, layer, expected) in [
        (&["router"][..], &[][..], json!({}), "proxy router: only sidecars are supported"),
        (&["--stsPort=15463"], &[], json!({}), "--stsPort = 15463: there is no Security Token Service"),
        (&[], &[("DISABLE_ENVOY", "T")], json!({}), "DISABLE_ENVOY = true: there is no agent without Envoy"),
        (
            &[],
            &[("CA_PROVIDER", "GoogleCAS")],
            json!({}),
            "CA_PROVIDER = GoogleCAS: only the CA of istiod is supported",
        ),
        (
            &[],
            &[("COMPLIANCE_POLICY", "fips-140-2")],
            json!({}),
            "COMPLIANCE_POLICY = fips-140-2: the cryptography of this agent is not restricted",
        ),
        (
            &[],
            &[],
            json!({"discoveryAddress": "meshca.googleapis.com:443"}),
            "CA_ADDR = meshca.googleapis.com:443: only the CA of istiod is supported",
        ),
        (
            &[],
            &[],
            json!({"privateKeyProvider": {"cryptomb": {"pollDelay": "1s"}}}),
            "privateKeyProvider: private keys are used by Envoy's own TLS only",
        ),
    ] {
        assert_eq!(found(words, variables, layer).as_deref(), Some(expected));
    }
}
