//! Tests of the headers that variables add to the requests to istiod and to the CA.

use std::process::Command;

use kit::agent;
use kit::envoy;

/// Only what is refused is run: the agent does not get as far as to start Envoy.
#[test]
fn a_variable_that_is_not_a_header_is_left_to_istios_agent() {
    let folder = envoy::folder("istio-headers");
    let write = |file: &str, text: &str| {
        let file = folder.join(file);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a writable folder");
        std::fs::write(file, text).expect("a writable folder");
    };
    write("var/lib/istio/envoy/envoy_bootstrap_tmpl.json", "{}");
    write("var/run/secrets/istio/root-cert.pem", "");
    for (variable, value) in [("XDS_HEADER_A", "a\u{7f}b"), ("CA_HEADER_b c", "1")] {
        let mut command = Command::new(agent::binary());
        command.args(["proxy", "sidecar"]).current_dir(&folder).env_clear();
        command.envs([("POD_NAME", "a"), ("POD_NAMESPACE", "b"), ("INSTANCE_IP", "127.0.0.1")]);
        command.env("PROXY_CONFIG", r#"{"binaryPath": "/bin/true"}"#).env("APP_HEALTH_FALLBACK", "off");
        let output = command.env(variable, value).output().expect("the agent");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{stderr}");
        assert!(stderr.contains(&format!("{variable}: not a valid header")), "{stderr}");
    }
}
