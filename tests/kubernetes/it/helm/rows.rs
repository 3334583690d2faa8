//! Values for tests, and what each changes, as a JSON patch of the objects that the defaults render.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::authority::Authority;
use serde_json::{Value, json};

use super::NAMESPACE;

/// Values for a test, and what they change.
pub(super) struct Row {
    pub(super) values: Value,
    /// Kind and name of an object, and the JSON patch that makes the expected object of the one
    /// without `values`. `null` instead of a patch: the object does not exist.
    pub(super) changes: Vec<(&'static str, &'static str, Value)>,
}

/// Objects that exist only with these values, added to both sides of each row.
pub(super) fn everything() -> Value {
    json!({
        "namespace": {"create": true},
        "discovery": {"enabled": true, "crds": {"create": true}},
        "networkPolicy": {"enabled": true, "nodeCIDRs": ["192.0.2.0/24"]},
        "monitoring": {"podMonitors": {"enabled": true}, "rules": {"enabled": true}},
    })
}

fn row(values: Value, changes: &[(&'static str, &'static str, Value)]) -> Row {
    Row { values, changes: changes.to_vec() }
}

const POD: &str = "/spec/template/spec";
pub(super) const WEBHOOK: &str = "app-health-webhook";
const DISCOVERY: &str = "app-health-discovery";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn add(path: &str, value: &Value) -> Value {
    json!({"op": "add", "path": path, "value": value})
}

fn remove(path: &str) -> Value {
    json!({"op": "remove", "path": path})
}

/// Adds environment variables to a Deployment's container.
fn environment(variables: &[(&str, &str)]) -> Value {
    let path = format!("{POD}/containers/0/env/-");
    variables.iter().map(|(name, value)| add(&path, &json!({"name": name, "value": value}))).collect()
}

/// Values of the whole chart.
fn common() -> Vec<Row> {
    let image = format!("{POD}/containers/0/image");
    let both =
        |change: Value| vec![("Deployment", WEBHOOK, change.clone()), ("Deployment", DISCOVERY, change)];
    let image_of = |values: Value, expected: &str| row(values, &both(json!([add(&image, &json!(expected))])));
    let without_class = |name: Value| {
        row(
            json!({"priorityClass": {"name": name}}),
            &[
                &both(json!([remove(&format!("{POD}/priorityClassName"))]))[..],
                &[("PriorityClass", "app-health-control-plane", Value::Null)],
            ]
            .concat(),
        )
    };
    vec![
        row(json!({}), &[]),
        // Helm passes global values to every chart of a release.
        row(json!({"global": {"region": "eu"}}), &[]),
        // A chart that contains this one can have the condition `app-health.enabled`.
        row(json!({"enabled": true}), &[]),
        row(json!({"webhook": {"settings": null}, "discovery": {"settings": null}}), &[]),
        image_of(
            json!({"image": {"repository": "registry.example.com:5000/a/control-plane"}}),
            &format!("registry.example.com:5000/a/control-plane:{VERSION}"),
        ),
        image_of(json!({"image": {"tag": "1.2.3"}}), "app-health-control-plane:1.2.3"),
        image_of(
            json!({"image": {"tag": "1.2.3", "digest": DIGEST}}),
            &format!("app-health-control-plane@{DIGEST}"),
        ),
        row(
            json!({"image": {"pullPolicy": "Always"}}),
            &both(json!([add(&format!("{POD}/containers/0/imagePullPolicy"), &json!("Always"))])),
        ),
        row(
            json!({"imagePullSecrets": [{"name": "registry"}]}),
            &both(json!([add(&format!("{POD}/imagePullSecrets"), &json!([{"name": "registry"}]))])),
        ),
        // null is the same as an empty text.
        row(
            json!({
                "image": {"tag": null, "digest": null, "pullPolicy": null},
                "sidecar": {
                    "image": {"repository": null, "tag": null, "digest": null},
                    "template": null, "templateConfigMap": null,
                },
                "webhook": {
                    "certificate": {"issuerRef": null, "secretName": null, "caBundle": null},
                    "clientCA": {"configMap": null, "name": null},
                },
                "discovery": {"service": {"type": null}},
                "monitoring": {"rules": {"runbookPrefix": null}},
            }),
            &[],
        ),
        row(json!({"namespace": {"create": false}}), &[("Namespace", NAMESPACE, Value::Null)]),
        row(
            json!({"priorityClass": {"create": false}}),
            &[("PriorityClass", "app-health-control-plane", Value::Null)],
        ),
        without_class(json!("")),
        without_class(Value::Null),
        row(
            json!({"priorityClass": {"value": 7}}),
            &[("PriorityClass", "app-health-control-plane", json!([add("/value", &json!(7))]))],
        ),
        row(
            json!({"rbac": {"create": false}}),
            &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
                .iter()
                .flat_map(|kind| [(*kind, WEBHOOK, Value::Null), (*kind, DISCOVERY, Value::Null)])
                .collect::<Vec<_>>(),
        ),
    ]
}

/// Values that `webhook` and `discovery` share.
fn component(name: &'static str, deployment: &'static str, container: &str) -> Vec<Row> {
    let row = |values: Value, kind: &'static str, change: Value| {
        row(json!({name: values}), &[(kind, deployment, change)])
    };
    let of_container = |field: &str| format!("{POD}/containers/0/{field}");
    let tolerations = json!([{"key": "a", "operator": "Exists"}]);
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}});
    let constraints = json!([{
        "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": deployment}},
    }]);
    let volume = json!({"name": "more", "emptyDir": {}});
    let mount = json!({"name": "more", "mountPath": "/more"});
    // Only discovery has volumes and the variable POD_NAME by default.
    let (volumes, mounts, arena_max) = match container {
        "webhook" => (
            add(&format!("{POD}/volumes"), &json!([volume])),
            add(&of_container("volumeMounts"), &json!([mount])),
            1,
        ),
        _ => (add(&format!("{POD}/volumes/-"), &volume), add(&of_container("volumeMounts/-"), &mount), 2),
    };
    vec![
        row(json!({"replicas": 5}), "Deployment", json!([add("/spec/replicas", &json!(5))])),
        Row {
            values: json!({name: {"replicas": 1}}),
            changes: vec![
                ("Deployment", deployment, json!([add("/spec/replicas", &json!(1))])),
                ("PodDisruptionBudget", deployment, Value::Null),
            ],
        },
        row(
            json!({"extraArgs": ["--a=b"]}),
            "Deployment",
            json!([add(&of_container("args/-"), &json!("--a=b"))]),
        ),
        row(json!({"extraEnv": [{"name": "A", "value": "1"}]}), "Deployment", environment(&[("A", "1")])),
        row(
            json!({"extraEnv": [{"name": "MALLOC_ARENA_MAX", "value": "2"}]}),
            "Deployment",
            json!([
                remove(&of_container(&format!("env/{arena_max}"))),
                add(&of_container("env/-"), &json!({"name": "MALLOC_ARENA_MAX", "value": "2"})),
            ]),
        ),
        row(
            json!({"extraVolumes": [volume], "extraVolumeMounts": [mount]}),
            "Deployment",
            json!([volumes, mounts]),
        ),
        row(
            json!({"resources": {"limits": {"memory": "1Gi"}}}),
            "Deployment",
            json!([add(&of_container("resources/limits/memory"), &json!("1Gi"))]),
        ),
        row(json!({"resources": null}), "Deployment", json!([remove(&of_container("resources"))])),
        row(
            json!({"podSecurityContext": {"runAsUser": 7}}),
            "Deployment",
            json!([add(&format!("{POD}/securityContext/runAsUser"), &json!(7))]),
        ),
        row(
            json!({"securityContext": {"privileged": false}}),
            "Deployment",
            json!([add(&of_container("securityContext/privileged"), &json!(false))]),
        ),
        row(
            json!({"terminationGracePeriodSeconds": 60}),
            "Deployment",
            json!([add(&format!("{POD}/terminationGracePeriodSeconds"), &json!(60))]),
        ),
        row(
            json!({"nodeSelector": {"kubernetes.io/os": "linux"}}),
            "Deployment",
            json!([add(&format!("{POD}/nodeSelector"), &json!({"kubernetes.io/os": "linux"}))]),
        ),
        row(
            json!({"tolerations": tolerations}),
            "Deployment",
            json!([add(&format!("{POD}/tolerations"), &tolerations)]),
        ),
        row(json!({"affinity": affinity}), "Deployment", json!([add(&format!("{POD}/affinity"), &affinity)])),
        row(
            json!({"topologySpreadConstraints": constraints}),
            "Deployment",
            json!([add(&format!("{POD}/topologySpreadConstraints"), &constraints)]),
        ),
        row(
            json!({"topologySpreadConstraints": []}),
            "Deployment",
            json!([remove(&format!("{POD}/topologySpreadConstraints"))]),
        ),
        row(
            json!({"podLabels": {"team": "shop"}}),
            "Deployment",
            json!([add("/spec/template/metadata/labels/team", &json!("shop"))]),
        ),
        row(
            json!({"podAnnotations": {"a": "b"}}),
            "Deployment",
            json!([add("/spec/template/metadata/annotations", &json!({"a": "b"}))]),
        ),
        row(
            json!({"annotations": {"a": "b"}}),
            "Deployment",
            json!([add("/metadata/annotations", &json!({"a": "b"}))]),
        ),
        row(json!({"serviceAccount": {"create": false}}), "ServiceAccount", Value::Null),
        row(
            json!({"serviceAccount": {"annotations": {"a": "b"}}}),
            "ServiceAccount",
            json!([add("/metadata/annotations", &json!({"a": "b"}))]),
        ),
        row(json!({"podDisruptionBudget": {"enabled": false}}), "PodDisruptionBudget", Value::Null),
        row(
            json!({"podDisruptionBudget": {"minAvailable": "50%"}}),
            "PodDisruptionBudget",
            json!([add("/spec/minAvailable", &json!("50%"))]),
        ),
        row(
            json!({"podDisruptionBudget": {"minAvailable": 0}}),
            "PodDisruptionBudget",
            json!([add("/spec/minAvailable", &json!(0))]),
        ),
        row(
            json!({"podDisruptionBudget": {"maxUnavailable": "50%"}}),
            "PodDisruptionBudget",
            json!([remove("/spec/minAvailable"), add("/spec/maxUnavailable", &json!("50%"))]),
        ),
        row(
            json!({"podDisruptionBudget": {"maxUnavailable": 1}}),
            "PodDisruptionBudget",
            json!([remove("/spec/minAvailable"), add("/spec/maxUnavailable", &json!(1))]),
        ),
        row(
            json!({"service": {"annotations": {"a": "b"}}}),
            "Service",
            json!([add("/metadata/annotations", &json!({"a": "b"}))]),
        ),
        Row { values: json!({name: {"serviceAccount": {"name": null}}}), changes: vec![] },
        Row {
            // Without quotes, this name would be a number.
            values: json!({name: {"serviceAccount": {"create": false, "name": "2024"}}}),
            changes: vec![
                ("ServiceAccount", deployment, Value::Null),
                (
                    "Deployment",
                    deployment,
                    json!([add(&format!("{POD}/serviceAccountName"), &json!("2024"))]),
                ),
                ("ClusterRoleBinding", deployment, json!([add("/subjects/0/name", &json!("2024"))])),
                ("RoleBinding", deployment, json!([add("/subjects/0/name", &json!("2024"))])),
            ],
        },
    ]
}

/// Values of the sidecar and of the webhook.
fn webhook() -> Vec<Row> {
    let deployment = |values: Value, change: Value| row(values, &[("Deployment", WEBHOOK, change)]);
    let entries = |path: &str, value: &Value| -> Value {
        (0..2).map(|index| add(&format!("/webhooks/{index}/{path}"), value)).collect()
    };
    let configuration = |values: Value, change: Value| {
        row(json!({"webhook": values}), &[("MutatingWebhookConfiguration", "app-health", change)])
    };
    let team = json!({"key": "team", "operator": "In", "values": ["shop"]});
    let first = |name: &str, value: &str| {
        add(&format!("{POD}/containers/0/env/0"), &json!({"name": name, "value": value}))
    };
    let image_after = |value: &str| {
        json!([add(
            &format!("{POD}/containers/0/env/3"),
            &json!({"name": "APP_HEALTH_IMAGE", "value": value})
        )])
    };
    let mounted = |name: &str, path: &str, source: Value| {
        let mut volume = json!({"name": name});
        json_patch::merge(&mut volume, &source);
        [
            add(
                &format!("{POD}/containers/0/volumeMounts"),
                &json!([{"name": name, "mountPath": path, "readOnly": true}]),
            ),
            add(&format!("{POD}/volumes"), &json!([volume])),
        ]
    };
    let own_rights = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
    let certificate = mounted("certificate", "/certificate", json!({"secret": {"secretName": "mine"}}));
    let client_ca = mounted("client-ca", "/client-ca", json!({"configMap": {"name": "cas"}}));
    let ignoring = |ignored: Value, all: &[&str], variable: &str| {
        row(
            json!({"webhook": {"ignoredNamespaces": ignored}}),
            &[
                (
                    "MutatingWebhookConfiguration",
                    "app-health",
                    entries("namespaceSelector/matchExpressions/1/values", &json!(all)),
                ),
                (
                    "Deployment",
                    WEBHOOK,
                    json!([add(
                        &format!("{POD}/containers/0/env/3"),
                        &json!({"name": "APP_HEALTH_IGNORED_NAMESPACES", "value": variable})
                    )]),
                ),
            ],
        )
    };
    let bundle = STANDARD.encode(Authority::new().pem());
    vec![
        deployment(
            json!({"sidecar": {"image": {"repository": "r/app-health"}}}),
            image_after(&format!("r/app-health:{VERSION}")),
        ),
        deployment(
            json!({"sidecar": {"image": {"repository": "r/app-health", "tag": "2"}}}),
            image_after("r/app-health:2"),
        ),
        deployment(
            json!({"sidecar": {"image": {"repository": "r/app-health", "digest": DIGEST}}}),
            image_after(&format!("r/app-health@{DIGEST}")),
        ),
        configuration(
            json!({"failurePolicy": "Ignore"}),
            json!([add("/webhooks/0/failurePolicy", &json!("Ignore"))]),
        ),
        configuration(json!({"timeoutSeconds": 10}), entries("timeoutSeconds", &json!(10))),
        configuration(json!({"reinvocationPolicy": "Never"}), entries("reinvocationPolicy", &json!("Never"))),
        configuration(
            json!({"namespaceSelector": [team]}),
            entries("namespaceSelector/matchExpressions/-", &team),
        ),
        configuration(json!({"objectSelector": [team]}), entries("objectSelector/matchExpressions/-", &team)),
        ignoring(json!(["kube-system", "other"]), &["kube-system", "other", NAMESPACE], "kube-system,other"),
        ignoring(Value::Null, &[NAMESPACE], ""),
        row(
            json!({"webhook": {"certificate": {"source": "secret", "secretName": "mine", "caBundle": bundle}}}),
            &[
                &own_rights.map(|kind| (kind, WEBHOOK, Value::Null))[..],
                &[
                    (
                        "MutatingWebhookConfiguration",
                        "app-health",
                        entries("clientConfig/caBundle", &json!(bundle)),
                    ),
                    (
                        "Deployment",
                        WEBHOOK,
                        [
                            &[
                                first("APP_HEALTH_CERT_DIR", "/certificate"),
                                add(&format!("{POD}/automountServiceAccountToken"), &json!(false)),
                            ][..],
                            &certificate[..],
                        ]
                        .concat()
                        .into(),
                    ),
                ],
            ]
            .concat(),
        ),
        deployment(
            json!({"webhook": {"clientCA": {"configMap": "cas", "key": "my.pem", "name": "api"}}}),
            [
                &[first("APP_HEALTH_CLIENT_NAME", "api"), first("APP_HEALTH_CLIENT_CA", "/client-ca/my.pem")]
                    [..],
                &client_ca[..],
            ]
            .concat()
            .into(),
        ),
        deployment(
            json!({"webhook": {"settings": {
                "mode": "rewrite-only", "sidecarName": "istio-proxy", "sidecarMode": "classic", "hold": false,
                "rewriteProbes": false, "statusPort": 0, "shutdownGrace": "500ms",
            }}}),
            environment(&[
                ("APP_HEALTH_HOLD", "false"),
                ("APP_HEALTH_MODE", "rewrite-only"),
                ("APP_HEALTH_REWRITE_PROBES", "false"),
                ("APP_HEALTH_SHUTDOWN_GRACE", "500ms"),
                ("APP_HEALTH_SIDECAR_MODE", "classic"),
                ("APP_HEALTH_SIDECAR_NAME", "istio-proxy"),
                ("APP_HEALTH_STATUSPORT", "0"),
            ]),
        ),
    ]
}

/// Values of discovery, network policies and monitoring.
fn others() -> Vec<Row> {
    let definitions = [
        "workloadgroups.networking.istio.io",
        "workloadentries.networking.istio.io",
        "serviceentries.networking.istio.io",
    ]
    .map(|name| ("CustomResourceDefinition", name, Value::Null));
    let block = |cidr: &str| json!([{"ipBlock": {"cidr": cidr}}]);
    let monitors = ["app-health-sidecar", WEBHOOK, DISCOVERY];
    vec![
        row(
            json!({"discovery": {"tlsSecret": "2024"}}),
            &[(
                "Deployment",
                DISCOVERY,
                json!([add(&format!("{POD}/volumes/0/secret/secretName"), &json!("2024"))]),
            )],
        ),
        row(json!({"discovery": {"crds": {"create": false}}}), &definitions),
        row(
            json!({"discovery": {"service": {"type": "LoadBalancer"}}}),
            &[(
                "Service",
                DISCOVERY,
                json!([
                    add("/spec/type", &json!("LoadBalancer")),
                    add("/spec/externalTrafficPolicy", &json!("Local")),
                    remove("/spec/ports/1"),
                ]),
            )],
        ),
        row(
            json!({"discovery": {"settings": {
                "debugAllowRemote": true, "trustDomain": ["a.example", "b.example"], "namespaces": ["shop", "pay"],
                "kubeQps": 100, "heartbeat": "30s", "disconnectGrace": "5s", "restartGrace": "60s",
                "unknownPolicy": "keep", "maxSilentPercent": 0, "maxUnhealthyPercent": 50, "lastEndpoint": "keep",
                "outboundListeners": "127.0.0.1", "debounce": "10ms", "debounceMax": "100ms", "acceptRate": 1_000_000,
                "maxStreams": 50_000_000, "maxMachinesPerIdentity": 50, "maxMachinesPerSource": 5,
                "peerAddressCheck": "warn", "trustNodeLabels": true, "exportNamespaces": ["shop", "pay"],
            }}}),
            &[(
                "Deployment",
                DISCOVERY,
                environment(&[
                    ("APP_HEALTH_ACCEPT_RATE", "1000000"),
                    ("APP_HEALTH_DEBOUNCE", "10ms"),
                    ("APP_HEALTH_DEBOUNCE_MAX", "100ms"),
                    ("APP_HEALTH_DEBUG_ALLOW_REMOTE", "true"),
                    ("APP_HEALTH_DISCONNECT_GRACE", "5s"),
                    ("APP_HEALTH_EXPORT_NAMESPACES", "shop,pay"),
                    ("APP_HEALTH_HEARTBEAT", "30s"),
                    ("APP_HEALTH_KUBE_QPS", "100"),
                    ("APP_HEALTH_LAST_ENDPOINT", "keep"),
                    ("APP_HEALTH_MAX_MACHINES_PER_IDENTITY", "50"),
                    ("APP_HEALTH_MAX_MACHINES_PER_SOURCE", "5"),
                    ("APP_HEALTH_MAX_SILENT_PERCENT", "0"),
                    ("APP_HEALTH_MAX_STREAMS", "50000000"),
                    ("APP_HEALTH_MAX_UNHEALTHY_PERCENT", "50"),
                    ("APP_HEALTH_NAMESPACES", "shop,pay"),
                    ("APP_HEALTH_OUTBOUND_LISTENERS", "127.0.0.1"),
                    ("APP_HEALTH_PEER_ADDRESS_CHECK", "warn"),
                    ("APP_HEALTH_RESTART_GRACE", "60s"),
                    ("APP_HEALTH_TRUST_DOMAIN", "a.example,b.example"),
                    ("APP_HEALTH_TRUST_NODE_LABELS", "true"),
                    ("APP_HEALTH_UNKNOWN_POLICY", "keep"),
                ]),
            )],
        ),
        row(
            json!({"networkPolicy": {"enabled": false}}),
            &[("NetworkPolicy", WEBHOOK, Value::Null), ("NetworkPolicy", DISCOVERY, Value::Null)],
        ),
        row(
            json!({"networkPolicy": {"nodeCIDRs": ["2001:db8::/64"]}}),
            &[
                (
                    "NetworkPolicy",
                    WEBHOOK,
                    json!([
                        add("/spec/ingress/0/from", &block("2001:db8::/64")),
                        add("/spec/ingress/1/from/0/ipBlock/cidr", &json!("2001:db8::/64")),
                    ]),
                ),
                (
                    "NetworkPolicy",
                    DISCOVERY,
                    json!([add("/spec/ingress/1/from/0/ipBlock/cidr", &json!("2001:db8::/64"))]),
                ),
            ],
        ),
        row(
            json!({"networkPolicy": {"apiServerCIDRs": ["198.51.100.1/32"]}}),
            &[
                ("NetworkPolicy", WEBHOOK, json!([add("/spec/ingress/0/from", &block("198.51.100.1/32"))])),
                (
                    "Deployment",
                    WEBHOOK,
                    json!([add(
                        &format!("{POD}/containers/0/env/0"),
                        &json!({"name": "APP_HEALTH_API_SERVER_ADDRESS", "value": "198.51.100.1/32"}),
                    )]),
                ),
            ],
        ),
        row(
            // As it is by default: the addresses are not known, and reviews must arrive.
            json!({"networkPolicy": {"nodeCIDRs": null}}),
            &[
                (
                    "NetworkPolicy",
                    WEBHOOK,
                    json!([remove("/spec/ingress/0/from"), remove("/spec/ingress/1/from/0")]),
                ),
                ("NetworkPolicy", DISCOVERY, json!([remove("/spec/ingress/1/from/0")])),
            ],
        ),
        row(
            // A rule without sources would allow all.
            json!({"networkPolicy": {"nodeCIDRs": null, "monitoringNamespace": ""}}),
            &[
                (
                    "NetworkPolicy",
                    WEBHOOK,
                    json!([remove("/spec/ingress/0/from"), remove("/spec/ingress/1")]),
                ),
                ("NetworkPolicy", DISCOVERY, json!([remove("/spec/ingress/1")])),
            ],
        ),
        row(
            json!({"networkPolicy": {"discoveryClientCIDRs": ["10.0.0.0/8"]}}),
            &[("NetworkPolicy", DISCOVERY, json!([add("/spec/ingress/0/from", &block("10.0.0.0/8"))]))],
        ),
        row(
            json!({"networkPolicy": {"monitoringNamespace": ""}}),
            &[WEBHOOK, DISCOVERY]
                .map(|name| ("NetworkPolicy", name, json!([remove("/spec/ingress/1/from/1")]))),
        ),
        row(
            json!({"monitoring": {"podMonitors": {"enabled": false}}}),
            &monitors.map(|name| ("PodMonitor", name, Value::Null)),
        ),
        row(
            json!({"monitoring": {"podMonitors": {"labels": {"release": "prometheus"}}}}),
            &monitors.map(|name| {
                ("PodMonitor", name, json!([add("/metadata/labels", &json!({"release": "prometheus"}))]))
            }),
        ),
        row(
            json!({"monitoring": {"rules": {"enabled": false}}}),
            &[("PrometheusRule", "app-health", Value::Null)],
        ),
        row(
            json!({"monitoring": {"rules": {"labels": {"release": "prometheus"}}}}),
            &[(
                "PrometheusRule",
                "app-health",
                json!([add("/metadata/labels", &json!({"release": "prometheus"}))]),
            )],
        ),
        row(
            json!({"monitoring": {"rules": {"runbookPrefix": "https://git.example.com/"}}}),
            &[(
                "PrometheusRule",
                "app-health",
                json!([add(
                    "/spec/groups/0/rules/0/annotations/runbook_url",
                    &json!("https://git.example.com/docs/alerts.md#apphealthprobefailing"),
                )]),
            )],
        ),
        row(
            // Without quotes, this prefix would be a map and a comment.
            json!({"monitoring": {"rules": {"runbookPrefix": "a: b #"}}}),
            &[(
                "PrometheusRule",
                "app-health",
                json!([add(
                    "/spec/groups/0/rules/0/annotations/runbook_url",
                    &json!("a: b #docs/alerts.md#apphealthprobefailing"),
                )]),
            )],
        ),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    [
        common(),
        component("webhook", WEBHOOK, "webhook"),
        component("discovery", DISCOVERY, "discovery"),
        webhook(),
        others(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Values with other objects than the rows: certificates, templates, labels of all objects.
pub(super) fn more_values() -> Vec<Value> {
    let issuer = json!({"name": "company", "kind": "ClusterIssuer"});
    vec![
        json!({"webhook": {"certificate": {"source": "cert-manager"}}}),
        json!({"webhook": {"certificate": {"source": "cert-manager", "issuerRef": issuer}}}),
        json!({"sidecar": {"template": "spec: {containers: [{name: app-health-proxy}]}"}}),
        json!({"sidecar": {"templateConfigMap": "mine"}}),
        json!({"webhook": {"enabled": false}}),
        json!({"discovery": {"enabled": false}}),
        json!({"commonLabels": {"team": "platform"}, "commonAnnotations": {"contact": "platform@example.com"}}),
    ]
}
