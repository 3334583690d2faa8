//! Values that the chart rejects before anything is installed.

use serde_json::{Value, json};

use super::{Fixture, NAMESPACE};

/// Wrong values, and what the error says.
fn rows() -> Vec<(Value, &'static [&'static str])> {
    vec![
        (json!({"webhok": {}}), &["'webhok' not allowed"]),
        (json!({"enabled": false}), &["/enabled'"]),
        (json!({"webhook": {"replica": 3}}), &["/webhook'", "'replica' not allowed"]),
        (json!({"webhook": {"settings": {"imgae": "x"}}}), &["/webhook/settings'", "'imgae' not allowed"]),
        (json!({"webhook": {"replicas": "two"}}), &["/webhook/replicas'", "want integer"]),
        (json!({"webhook": {"replicas": -1}}), &["/webhook/replicas'"]),
        (json!({"webhook": {"failurePolicy": "fail"}}), &["/webhook/failurePolicy'", "'Fail', 'Ignore'"]),
        (json!({"webhook": {"timeoutSeconds": 31}}), &["/webhook/timeoutSeconds'"]),
        (json!({"webhook": {"serviceAccount": null}}), &["/webhook'", "serviceAccount"]),
        (
            json!({"webhook": {"certificate": {"source": "secret"}}}),
            &["/webhook/certificate/secretName'", "/webhook/certificate/caBundle'"],
        ),
        (
            json!({"webhook": {"objectSelector": [{"key": "a", "operator": "Equals"}]}}),
            &["/webhook/objectSelector/0/operator'"],
        ),
        (
            json!({"webhook": {"objectSelector": [{"key": "a", "operator": "In"}]}}),
            &["/webhook/objectSelector/0'", "'values'"],
        ),
        (
            json!({"webhook": {"certificate": {"source": "cert-manager", "issuerRef": {"kind": "ClusterIssuer"}}}}),
            &["/webhook/certificate/issuerRef'", "'name'"],
        ),
        (json!({"webhook": {"clientCA": {"name": "api"}}}), &["/webhook/clientCA/configMap'"]),
        (
            json!({"webhook": {"podLabels": {"app.kubernetes.io/name": "other"}}}),
            &["/webhook/podLabels/app.kubernetes.io~1name'"],
        ),
        (json!({"webhook": {"settings": {"mode": "rewrite"}}}), &["/webhook/settings/mode'"]),
        (json!({"webhook": {"settings": {"statusPort": 65536}}}), &["/webhook/settings/statusPort'"]),
        (json!({"webhook": {"settings": {"statusPort": 15001}}}), &["/webhook/settings/statusPort'"]),
        (json!({"webhook": {"settings": {"shutdownGrace": "1m"}}}), &["/webhook/settings/shutdownGrace'"]),
        (json!({"webhook": {"tolerations": {"key": "a"}}}), &["/webhook/tolerations'", "want array"]),
        (json!({"webhook": {"extraEnv": {"A": "b"}}}), &["/webhook/extraEnv'", "want array"]),
        (
            json!({"webhook": {"extraEnv": [{"name": "A", "value": 1}]}}),
            &["/webhook/extraEnv/0/value'", "want string"],
        ),
        (json!({"image": {"repository": "registry.example.com/app-health:1"}}), &["/image/repository'"]),
        (json!({"image": {"tag": 0.1}}), &["/image/tag'", "want string"]),
        (json!({"image": {"digest": "0123"}}), &["/image/digest'"]),
        (json!({"image": {"pullPolicy": "always"}}), &["/image/pullPolicy'"]),
        (json!({"imagePullSecrets": ["registry"]}), &["/imagePullSecrets/0'", "want object"]),
        (json!({"sidecar": {"image": {"tag": "1"}}}), &["/sidecar/image/repository'"]),
        (json!({"sidecar": {"template": "{"}}), &["sidecar.template: "]),
        (json!({"sidecar": {"template": "sidecar.yaml"}}), &["sidecar.template: "]),
        (
            json!({"sidecar": {"template": "spec: {}", "templateConfigMap": "a"}}),
            &["sidecar.template", "sidecar.templateConfigMap"],
        ),
        (json!({"networkPolicy": {"enabled": true}}), &["/networkPolicy/nodeCIDRs'"]),
        (json!({"networkPolicy": {"nodeCIDRs": ["192.0.2.1"]}}), &["/networkPolicy/nodeCIDRs/0'"]),
        (
            json!({"discovery": {"settings": {"maxSilentPercent": 101}}}),
            &["/discovery/settings/maxSilentPercent'"],
        ),
        (json!({"discovery": {"settings": {"heartbeat": "500ms"}}}), &["/discovery/settings/heartbeat'"]),
        (json!({"discovery": {"settings": {"trustDomain": "a"}}}), &["/discovery/settings/trustDomain'"]),
        (json!({"discovery": {"service": {"type": "ExternalName"}}}), &["/discovery/service/type'"]),
        (json!({"priorityClass": {"value": 2_000_000_000_u32}}), &["/priorityClass/value'"]),
    ]
}

pub(super) fn rejected(fixture: &mut Fixture) {
    for (values, parts) in rows() {
        let error = fixture.helm.template(NAMESPACE, &values).expect_err(&values.to_string());
        for part in parts {
            assert!(error.contains(part), "{values}: {part} is missing: {error}");
        }
    }
}
