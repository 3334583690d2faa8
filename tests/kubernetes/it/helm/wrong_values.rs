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
        (json!({"networkPolicy": {"nodeCIDRs": ["192.0.2.1"]}}), &["/networkPolicy/nodeCIDRs/0'"]),
        (
            json!({"discovery": {"settings": {"maxSilentPercent": 101}}}),
            &["/discovery/settings/maxSilentPercent'"],
        ),
        (json!({"discovery": {"settings": {"heartbeat": "500ms"}}}), &["/discovery/settings/heartbeat'"]),
        (json!({"discovery": {"settings": {"trustDomain": "a"}}}), &["/discovery/settings/trustDomain'"]),
        (json!({"discovery": {"service": {"type": "ExternalName"}}}), &["/discovery/service/type'"]),
        (json!({"priorityClass": {"value": 2_000_000_000_u32}}), &["/priorityClass/value'"]),
        (json!({"priorityClass": {"value": -2_147_483_649_i64}}), &["/priorityClass/value'"]),
    ]
}

/// Wrong values of the webhook.
fn webhook() -> Vec<(Value, &'static [&'static str])> {
    let certificate = |values: Value| json!({"webhook": {"certificate": values}});
    let setting = |name: &str, value: Value| json!({"webhook": {"settings": {name: value}}});
    vec![
        (
            certificate(json!({"secretName": "mine", "caBundle": "QQ=="})),
            &["/webhook/certificate/secretName'", "/webhook/certificate/caBundle'"],
        ),
        (
            certificate(json!({"source": "cert-manager", "secretName": "mine"})),
            &["/webhook/certificate/secretName'"],
        ),
        (certificate(json!({"issuerRef": {"name": "company"}})), &["/webhook/certificate/issuerRef'"]),
        (
            certificate(json!({"source": "secret", "secretName": null, "caBundle": null})),
            &["/webhook/certificate'", "'secretName', 'caBundle'"],
        ),
        (
            certificate(json!({"source": "secret", "secretName": "mine", "caBundle": "QQ=="})),
            &["webhook.certificate.caBundle: ", "-----BEGIN CERTIFICATE-----"],
        ),
        (
            certificate(json!({"source": "secret", "secretName": "mine", "caBundle": "LS0tL"})),
            &["webhook.certificate.caBundle: "],
        ),
        (json!({"webhook": {"ignoredNamespaces": ["a.b"]}}), &["/webhook/ignoredNamespaces/0'"]),
        (
            json!({"webhook": {"namespaceSelector": [{"key": "a b", "operator": "Exists"}]}}),
            &["/webhook/namespaceSelector/0/key'"],
        ),
        (
            json!({"webhook": {"objectSelector": [{"key": "a", "operator": "In", "values": ["b c"]}]}}),
            &["/webhook/objectSelector/0/values/0'"],
        ),
        (setting("sidecarName", json!("proxy-")), &["/webhook/settings/sidecarName'"]),
        (setting("sidecarName", json!("")), &["/webhook/settings/sidecarName'"]),
        (setting("shutdownGrace", json!("1000000000s")), &["/webhook/settings/shutdownGrace'"]),
        (
            setting("shutdownGrace", json!("20s")),
            &["webhook.terminationGracePeriodSeconds: 20", "webhook.settings.shutdownGrace"],
        ),
        (
            json!({"webhook": {"terminationGracePeriodSeconds": 5}}),
            &["webhook.terminationGracePeriodSeconds: 5", "webhook.settings.shutdownGrace"],
        ),
        (
            json!({
                "webhook": {"clientCA": {"configMap": "cas"}, "extraVolumes": [{"name": "client-ca", "emptyDir": {}}]},
            }),
            &["webhook.extraVolumes: ", "client-ca"],
        ),
        (
            json!({
                "sidecar": {"templateConfigMap": "mine"},
                "webhook": {"extraVolumeMounts": [{"name": "more", "mountPath": "/template/"}]},
            }),
            &["webhook.extraVolumeMounts: ", "/template"],
        ),
    ]
}

/// Wrong values of discovery.
fn discovery() -> Vec<(Value, &'static [&'static str])> {
    let enabled = |values: Value| {
        let mut all = json!({"discovery": {"enabled": true}});
        json_patch::merge(&mut all["discovery"], &values);
        all
    };
    let setting = |name: &str, value: Value| json!({"discovery": {"settings": {name: value}}});
    vec![
        (setting("heartbeat", json!("1000000000s")), &["/discovery/settings/heartbeat'"]),
        (setting("namespaces", json!(["a.b"])), &["/discovery/settings/namespaces/0'"]),
        (setting("outboundListeners", json!("localhost")), &["/discovery/settings/outboundListeners'"]),
        (setting("outboundListeners", json!("127.0.0.256")), &["/discovery/settings/outboundListeners'"]),
        (setting("outboundListeners", json!("224.0.0.1")), &["/discovery/settings/outboundListeners'"]),
        (setting("outboundListeners", json!("255.255.255.255")), &["/discovery/settings/outboundListeners'"]),
        (setting("outboundListeners", json!("ff02::1")), &["/discovery/settings/outboundListeners'"]),
        (
            enabled(json!({"settings": {"debounce": "1s", "debounceMax": "900ms"}})),
            &["discovery.settings.debounce: 1s", "900ms"],
        ),
        (
            enabled(json!({"settings": {"debounce": "201ms"}})),
            &["discovery.settings.debounce: 201ms", "200ms"],
        ),
        (
            enabled(json!({"settings": {"debounceMax": "49ms"}})),
            &["discovery.settings.debounce: 50ms", "discovery.settings.debounceMax", "49ms"],
        ),
        (
            enabled(json!({"extraVolumes": [{"name": "tls", "emptyDir": {}}]})),
            &["discovery.extraVolumes: ", "tls"],
        ),
        (
            enabled(json!({"extraVolumeMounts": [{"name": "more", "mountPath": "/etc/app-health/tls"}]})),
            &["discovery.extraVolumeMounts: ", "/etc/app-health/tls"],
        ),
        (
            enabled(json!({"podDisruptionBudget": {"minAvailable": 2}})),
            &["discovery.podDisruptionBudget.minAvailable: 2 of 2"],
        ),
    ]
}

/// Wrong values that have the same type in several places.
fn shared() -> Vec<(Value, &'static [&'static str])> {
    let budget = |values: Value| json!({"webhook": {"replicas": 3, "podDisruptionBudget": values}});
    let toleration = |values: Value| json!({"webhook": {"tolerations": [values]}});
    let constraint = |values: Value| {
        let mut all = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
        json_patch::merge(&mut all, &values);
        json!({"webhook": {"topologySpreadConstraints": [all]}})
    };
    let variable = |values: Value| json!({"webhook": {"extraEnv": [values]}});
    let nodes = |cidr: &str| json!({"networkPolicy": {"nodeCIDRs": [cidr]}});
    vec![
        (json!({"image": {"repository": "Registry/app-health"}}), &["/image/repository'"]),
        (json!({"image": {"repository": "registry.example.com//app-health"}}), &["/image/repository'"]),
        (json!({"image": {"repository": "registry.example.com/app-health/"}}), &["/image/repository'"]),
        (json!({"image": {"repository": "https://registry.example.com/a"}}), &["/image/repository'"]),
        (json!({"sidecar": {"image": {"repository": "a/B"}}}), &["/sidecar/image/repository'"]),
        (json!({"commonLabels": {"a b": "c"}}), &["/commonLabels'", "'a b' not allowed"]),
        (json!({"commonLabels": {"a": "b c"}}), &["/commonLabels/a'"]),
        (json!({"commonAnnotations": {"a/b/c": "d"}}), &["/commonAnnotations'", "'a/b/c' not allowed"]),
        (json!({"webhook": {"podLabels": {"-a": "b"}}}), &["/webhook/podLabels'", "'-a' not allowed"]),
        (json!({"webhook": {"podLabels": {"a": "b/c"}}}), &["/webhook/podLabels/a'"]),
        (json!({"webhook": {"nodeSelector": {"a": "b c"}}}), &["/webhook/nodeSelector/a'"]),
        (
            json!({"webhook": {"service": {"annotations": {"a b": "c"}}}}),
            &["/webhook/service/annotations'", "'a b' not allowed"],
        ),
        (
            json!({"monitoring": {"podMonitors": {"labels": {"a": "b c"}}}}),
            &["/monitoring/podMonitors/labels/a'"],
        ),
        (json!({"monitoring": {"rules": {"labels": {"a": "b c"}}}}), &["/monitoring/rules/labels/a'"]),
        (json!({"webhook": {"replicas": 2_147_483_648_u32}}), &["/webhook/replicas'"]),
        (json!({"webhook": {"serviceAccount": {"name": "a..b"}}}), &["/webhook/serviceAccount/name'"]),
        (budget(json!({"minAvailable": 3})), &["webhook.podDisruptionBudget.minAvailable: 3 of 3"]),
        (budget(json!({"minAvailable": "67%"})), &["webhook.podDisruptionBudget.minAvailable: 67% of 3"]),
        (budget(json!({"minAvailable": "100%"})), &["/webhook/podDisruptionBudget/minAvailable'"]),
        (budget(json!({"maxUnavailable": 0})), &["/webhook/podDisruptionBudget/maxUnavailable'"]),
        (budget(json!({"maxUnavailable": "0%"})), &["/webhook/podDisruptionBudget/maxUnavailable'"]),
        (
            budget(json!({"minAvailable": 1, "maxUnavailable": 1})),
            &["/webhook/podDisruptionBudget/minAvailable'"],
        ),
        (variable(json!({"name": "A=B", "value": "c"})), &["/webhook/extraEnv/0/name'"]),
        (
            variable(json!({"name": "A", "valueFrom": {"secret": {}}})),
            &["/webhook/extraEnv/0/valueFrom'", "'secret' not allowed"],
        ),
        (
            variable(json!({"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "spec"}}})),
            &["/webhook/extraEnv/0/value'"],
        ),
        (
            json!({"webhook": {"resources": {"limit": {"memory": "1Gi"}}}}),
            &["/webhook/resources'", "'limit' not allowed"],
        ),
        (
            json!({"webhook": {"resources": {"limits": {"memory": "1GB"}}}}),
            &["/webhook/resources/limits/memory'"],
        ),
        (toleration(json!({"keys": "a"})), &["/webhook/tolerations/0'", "'keys' not allowed"]),
        (toleration(json!({"operator": "In"})), &["/webhook/tolerations/0/operator'"]),
        (
            constraint(json!({"topologyKey": null})),
            &["/webhook/topologySpreadConstraints/0'", "'topologyKey'"],
        ),
        (constraint(json!({"maxSkew": "1"})), &["/webhook/topologySpreadConstraints/0/maxSkew'"]),
        (
            constraint(json!({"whenUnsatisfiable": "Never"})),
            &["/webhook/topologySpreadConstraints/0/whenUnsatisfiable'"],
        ),
        (nodes("192.0.2.0/33"), &["/networkPolicy/nodeCIDRs/0'"]),
        (nodes("192.0.256.0/24"), &["/networkPolicy/nodeCIDRs/0'"]),
        (nodes("2001:db8::/129"), &["/networkPolicy/nodeCIDRs/0'"]),
        (json!({"networkPolicy": {"monitoringNamespace": "a.b"}}), &["/networkPolicy/monitoringNamespace'"]),
    ]
}

pub(super) fn rejected(fixture: &mut Fixture) {
    for (values, parts) in [rows(), webhook(), discovery(), shared()].concat() {
        let error = fixture.helm.template(NAMESPACE, &values).expect_err(&values.to_string());
        for part in parts {
            assert!(error.contains(part), "{values}: {part} is missing: {error}");
        }
    }
}
