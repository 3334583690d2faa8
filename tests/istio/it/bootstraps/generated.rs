//! Random command lines, environments, files and annotations of Pods.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::yaml;

/// What an injector gives the agent of a Pod.
#[derive(Debug)]
pub(super) struct Case {
    /// The words after `proxy`.
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    /// Files by their names in the working directory, besides those that all cases have.
    pub(super) files: BTreeMap<&'static str, String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

/// A field of `ProxyConfig`, and what makes a value of it.
type Field = (&'static str, fn(&mut Rng) -> Value);

/// Values of which a variable or field gets one.
type Choices = &'static [(&'static str, &'static [&'static str])];

const VARIABLES: Choices = &[
    ("INSTANCE_IP", &["10.1.2.3", "10.1.2.3", "fd00::7"]),
    ("POD_NAME", &["web-1"]),
    ("POD_NAMESPACE", &["shop", "default"]),
    ("SERVICE_ACCOUNT", &["web"]),
    ("ISTIO_CPU_LIMIT", &["2", "1"]),
    ("ISTIO_META_CLUSTER_ID", &["Kubernetes", ""]),
    ("ISTIO_META_NODE_NAME", &["node-1"]),
    ("ISTIO_META_INTERCEPTION_MODE", &["REDIRECT", "TPROXY", "NONE"]),
    ("ISTIO_META_WORKLOAD_NAME", &["web", ""]),
    ("ISTIO_META_OWNER", &["kubernetes://apis/apps/v1/namespaces/shop/deployments/web"]),
    ("ISTIO_META_MESH_ID", &["cluster.local"]),
    ("ISTIO_META_NETWORK", &["east"]),
    ("ISTIO_META_APP_CONTAINERS", &["app,second"]),
    (
        "ISTIO_META_POD_PORTS",
        &[
            "[\n]",
            r#"[{"name":"http","containerPort":80,"protocol":"TCP"}]"#,
            "[\n{\"containerPort\":1}\n,{\"name\":\"b\",\"containerPort\":2}]",
        ],
    ),
    ("ISTIO_META_DNS_CAPTURE", &["true", "false", "1"]),
    ("ISTIO_META_ENABLE_HBONE", &["true", "false"]),
    ("ISTIO_META_ENABLE_SELF_DISCOVERY", &["true", "false"]),
    ("ISTIO_META_ISTIO_VERSION", &["1.31.0"]),
    ("ISTIO_META_OWN_FIELD", &["a \"quoted\" <text>&", ""]),
    ("ISTIO_META_LOAD_STATS_CONFIG_JSON", &[r#"{"api_type": "GRPC"}"#]),
    (
        "ISTIO_METAJSON_LABELS",
        &[
            r#"{"app":"static","tier":"a"}"#,
            "{}",
            r#"{"topology.istio.io/locality":"r/z"}"#,
            r#"{"app":null}"#,
            "[]",
        ],
    ),
    ("ISTIO_METAJSON_OTHER", &[r#"{"list":[1,2.5,"x"],"nested":{"a":null}}"#, "not JSON", "[]"]),
    ("ENVOY_STATUS_PORT", &["16021"]),
    ("ENVOY_PROMETHEUS_PORT", &["16090"]),
    ("ENVOY_SECURE_METRICS_PORT", &["16443"]),
    ("ENVOY_SECURE_MERGED_METRICS_PORT", &["16444"]),
    ("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", &["true", "false"]),
    ("ENVOY_SKIP_DEPRECATED_LOGS", &["false"]),
    ("PEER_METADATA_DISCOVERY", &["true", "false"]),
    ("ISTIO_DELTA_XDS", &["false", "true"]),
    ("ISTIO_DUAL_STACK", &["true"]),
    ("HTTP_STRIP_FRAGMENT_FROM_PATH_UNSAFE_IF_DISABLED", &["false"]),
    ("HOST_IP", &["10.9.9.9"]),
    ("XDS_ROOT_CA", &["SYSTEM"]),
    ("DNS_PROXY_ADDR", &["localhost:16053"]),
    ("ISTIO_BOOTSTRAP", &["", OTHER_TEMPLATE]),
    ("ISTIO_BOOTSTRAP_OVERRIDE", &[OVERRIDE, "missing.yaml", ""]),
];

/// Variables that a Pod has in nearly every case.
const USUAL: usize = 4;

const LABELS: Choices = &[
    ("app", &["web"]),
    ("app.kubernetes.io/name", &["web-name"]),
    ("service.istio.io/canonical-name", &["web-canonical"]),
    ("pod-template-hash", &["abc"]),
    ("topology.istio.io/locality", &["region/zone/sub", "region.zone", "a/b/c/d", "/", ""]),
    ("istio-locality", &["other.zone.sub.more", ""]),
    ("version", &["v1"]),
];

const ANNOTATIONS: Choices = &[
    ("sidecar.istio.io/statsInclusionPrefixes", &["cluster.outbound,http.{pod_ip}_", ""]),
    ("sidecar.istio.io/statsInclusionSuffixes", &["upstream_rq_1xx"]),
    ("sidecar.istio.io/statsInclusionRegexps", &[r"http.[test]*\.upstream,<\d+>=&"]),
    ("sidecar.istio.io/extraStatTags", &["dlp_status,dlp_error,dlp_status", ",", "a, b"]),
    (
        "sidecar.istio.io/statsHistogramBuckets",
        &[r#"{"istio":[1,5,10.5],"a":[1e3]}"#, "x", r#"{"a":["b"]}"#, "null", r#"{"b":[2],"a":[0.1,1e21]}"#],
    ),
    ("sidecar.istio.io/statsFlushInterval", &["10s", "1m", "soon", "1.5s", ""]),
    ("sidecar.istio.io/statsEvictionInterval", &["60s", "7s", "1h"]),
    ("sidecar.istio.io/discoveryAddress", &["istiod-canary.istio-system.svc:15012", "localhost:15012"]),
    ("status.sidecar.istio.io/port", &["15120"]),
    ("traffic.sidecar.istio.io/excludeInterfaces", &["east", "missing,west", "east,west", ""]),
    (
        "note",
        &[
            "a \"quoted\"\ttext\nof two lines é",
            "\u{7}\\\u{b}\u{1b}\u{7f}",
            "\u{a0}\u{2028}\u{feff}\u{10ffff} 文",
        ],
    ),
];

/// Words of which a command line gets some.
const ARGUMENTS: &[&[&[&str]]] = &[
    &[&["--domain", "shop.svc.cluster.local"], &["--domain=other.svc"], &["--domain", ""]],
    &[
        &["--proxyLogLevel=warning"],
        &["--proxyLogLevel", "info,misc:error,upstream:debug"],
        &["--proxyLogLevel=off,a:b:c"],
    ],
    &[&["--proxyComponentLogLevel=misc:error"], &["--proxyComponentLogLevel", ""]],
    &[&["--log_output_level=default:info"], &["--log_output_level", "default:warn,xdsproxy:debug"]],
    &[&["--concurrency", "3"], &["--concurrency=0"]],
    &[&["--serviceCluster", "web"], &["--serviceCluster="]],
    &[&["--templateFile", OTHER_TEMPLATE]],
    &[&["--outlierLogPath=/dev/stdout"]],
    &[&["--log_as_json"], &["--log_as_json=false"]],
    &[&["--meshConfig", OTHER_MESH], &["--meshConfig=missing"]],
    &[&["--profiling=false"], &["--profiling"]],
    &[&["--stsPort=0"], &["--stsPort", "0"]],
    &[&["--controlPlaneAuthPolicy", "MUTUAL_TLS"], &["--drainDuration=45s"], &["--skipDeprecated"]],
    &[&["--keepaliveInterval", "30s"], &["--log_target=stdout"]],
];

pub(super) const OTHER_TEMPLATE: &str = "other_template.json";
const MESH: &str = "etc/istio/config/mesh";
const OTHER_MESH: &str = "mesh.yaml";
const CUSTOM: &str = "custom.json";
const OVERRIDE: &str = "override.yaml";
const CUSTOM_BOOTSTRAP: &str = r#"{"node": {"id": "custom"}}"#;
const OVERRIDING: &str = "static_resources:\n  clusters:\n  - name: own\n    # The host of the node.\n    address: $(HOST_IP)\n    bracketed: '[$(HOST_IP)]:1'\nlayered_runtime: {layers: []}\n";

impl Case {
    /// The names of all files of cases.
    pub(super) const FILES: [&str; 4] = [MESH, OTHER_MESH, CUSTOM, OVERRIDE];

    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut environment = Vec::new();
        for (index, (name, values)) in VARIABLES.iter().enumerate() {
            if rng.u32(..100) < if index < USUAL { 97 } else { 25 } {
                environment.push(((*name).to_owned(), choose(&mut rng, values).to_owned()));
            }
        }
        let config = proxy_config(&mut rng, true);
        environment.push(("PROXY_CONFIG".to_owned(), text(&mut rng, &config)));
        let labels = rng.bool().then(|| texts(&mut rng, LABELS));
        let mut annotations = rng.bool().then(|| texts(&mut rng, ANNOTATIONS));
        if let Some(annotations) = annotations.as_mut().filter(|_| rng.bool()) {
            let config = proxy_config(&mut rng, false);
            annotations.insert("proxy.istio.io/config".to_owned(), text(&mut rng, &config));
        }
        let mut files =
            BTreeMap::from([(CUSTOM, CUSTOM_BOOTSTRAP.to_owned()), (OVERRIDE, OVERRIDING.to_owned())]);
        for name in [MESH, OTHER_MESH] {
            if rng.u32(..3) == 0 {
                let mesh = mesh(&mut rng);
                files.insert(name, text(&mut rng, &mesh));
            }
        }
        Self { arguments: arguments(&mut rng), environment, files, labels, annotations }
    }
}

/// The words of a command line, with the type of the node at any place.
fn arguments(rng: &mut Rng) -> Vec<String> {
    let mut options: Vec<&[&str]> = Vec::new();
    for choices in ARGUMENTS {
        if rng.u32(..4) == 0 {
            options.push(choose(rng, choices));
        }
    }
    if rng.u32(..4) > 0 {
        // The word after an unknown flag is its value.
        options.insert(if rng.bool() { 0 } else { rng.usize(..=options.len()) }, &["sidecar"]);
    }
    options.concat().into_iter().map(str::to_owned).collect()
}

/// A mesh's configuration, of which the agent uses one field.
fn mesh(rng: &mut Rng) -> Value {
    let mut mesh = json!({
        "accessLogFile": "/dev/stdout",
        "enablePrometheusMerge": rng.bool(),
        "trustDomain": choose(rng, &["cluster.local", "mesh.example"]),
        "outboundTrafficPolicy": {"mode": "REGISTRY_ONLY"},
        "extensionProviders": [{"name": "own", "envoyOtelAls": {"service": "otel.shop.svc", "port": 4317}}],
        "ownField": [[], {}, [1, [2]], null],
    });
    if rng.u32(..4) > 0 {
        mesh["defaultConfig"] = proxy_config(rng, false);
    }
    mesh
}

/// Writes a document as JSON or YAML.
fn text(rng: &mut Rng, document: &Value) -> String {
    if rng.bool() { document.to_string() } else { yaml::write(rng, document) }
}

fn choose<T: Clone>(rng: &mut Rng, values: &[T]) -> T {
    values[rng.usize(..values.len())].clone()
}

fn texts(rng: &mut Rng, choices: Choices) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for (name, values) in choices {
        if rng.u32(..3) == 0 {
            map.insert((*name).to_owned(), choose(rng, values).to_owned());
        }
    }
    map
}

fn tls(rng: &mut Rng) -> Value {
    let mode = choose(rng, &["DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"]);
    let mut tls = json!({"mode": mode, "caCertificates": "/etc/ca.pem"});
    if mode == "MUTUAL" {
        tls["clientCertificate"] = "/etc/cert.pem".into();
        tls["privateKey"] = "/etc/key.pem".into();
    }
    if rng.bool() {
        tls["sni"] = "zipkin.example".into();
    }
    if rng.bool() && mode != "DISABLE" {
        tls["subjectAltNames"] = json!(["a.example", "b.example"]);
    }
    tls
}

fn proxy_config(rng: &mut Rng, is_base: bool) -> Value {
    let fields: &[Field] = &[
        ("concurrency", |rng| {
            choose(rng, &[json!(0), json!(1), json!("4"), json!(2.0), json!(null), json!(-1)])
        }),
        ("drainDuration", |rng| choose(rng, &["30s", "1m"]).into()),
        ("terminationDrainDuration", |_| "20s".into()),
        ("terminationDrainDuration", |_| "1m30s".into()),
        ("discoveryAddress", |rng| choose(rng, &["istiod.other.svc:15012", "localhost:15012"]).into()),
        ("proxyAdminPort", |_| 15999.into()),
        ("controlPlaneAuthPolicy", |rng| choose(rng, &[json!("NONE"), json!(0), json!("MUTUAL_TLS")])),
        ("stat_name_length", |_| 200.into()),
        ("statusPort", |_| 15120.into()),
        ("meshId", |_| "mesh".into()),
        ("serviceCluster", |rng| choose(rng, &["web.shop", "istio-proxy"]).into()),
        ("tracingServiceName", |rng| {
            choose(rng, &["APP_LABEL_AND_NAMESPACE", "CANONICAL_NAME_ONLY", "CANONICAL_NAME_AND_NAMESPACE"])
                .into()
        }),
        ("tracing", |rng| {
            let tracer = choose(rng, &["zipkin", "datadog"]);
            let address = choose(rng, &["collector:9411", "$(HOST_IP):8126", "[fd00::9]:9411"]);
            let mut tracing =
                json!({tracer: {"address": address}, "sampling": choose(rng, &[1.5, 100.0, 0.0])});
            if rng.bool() {
                tracing["tlsSettings"] = tls(rng);
            }
            if rng.bool() {
                tracing["customTags"] =
                    json!({"a": {"literal": {"value": "x"}}, "b": {"header": {"name": "h"}}});
            }
            tracing
        }),
        ("envoyMetricsService", |rng| {
            let mut service = json!({"address": "metrics:15000"});
            if rng.bool() {
                service["tlsSettings"] = tls(rng);
            }
            if rng.bool() {
                service["tcpKeepalive"] = json!({"probes": 3, "time": "10s", "interval": "5.5s"});
            }
            service
        }),
        ("envoyAccessLogService", |rng| json!({"address": "logs:15000", "tlsSettings": tls(rng)})),
        ("statsdUdpAddress", |rng| choose(rng, &["10.1.1.1:9125", "localhost:1", "[fd00::1]:2"]).into()),
        ("proxyMetadata", |rng| {
            let mut map = Map::new();
            for (key, value) in [
                ("ISTIO_META_DNS_CAPTURE", "true"),
                ("ISTIO_META_OWN", "x"),
                ("OTHER", "y"),
                ("METRICS_LOCALHOST_ACCESS_ONLY", "true"),
                ("ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS", "77"),
            ] {
                if rng.bool() {
                    map.insert(key.to_owned(), value.into());
                }
            }
            map.into()
        }),
        ("runtimeValues", |rng| {
            json!({
                "overload.global_downstream_max_connections": choose(rng, &["1000", "many"]),
                "envoy.reloadable_features.http_reject_path_with_fragment": choose(rng, &["", "true", "false"]),
                "own": "5",
            })
        }),
        ("extraStatTags", |_| json!(["request_host", "dlp_status"])),
        ("gatewayTopology", |_| json!({"numTrustedProxies": 2, "forwardClientCertDetails": "SANITIZE_SET"})),
        (
            "proxyStatsMatcher",
            |_| json!({"inclusionPrefixes": ["a_{pod_ip}"], "inclusionRegexps": [".*rq.*"]}),
        ),
        ("holdApplicationUntilProxyStarts", |rng| rng.bool().into()),
        ("image", |_| json!({"imageType": "distroless"})),
        ("proxyHeaders", |rng| {
            choose(rng, &[
                &json!({"server": {"disabled": true}, "requestId": {"disabled": false}}),
                &json!({"attemptCount": {}, "forwardedClientCert": "SANITIZE", "setCurrentClientCertDetails": {"dns": true}}),
            ])
            .clone()
        }),
        ("statsCompression", |rng| rng.bool().into()),
        ("fileFlushInterval", |rng| choose(rng, &["2s", "0s", "0.0015s"]).into()),
        ("fileFlushMinSizeKb", |rng| {
            choose(rng, &[json!(64), json!(0), json!("7"), json!(4_294_967_295_u32)])
        }),
        ("readinessProbe", |_| json!({"periodSeconds": 5, "httpGet": {"port": 8080, "path": "/ready"}})),
        ("caCertificatesPem", |_| json!(["x"])),
        ("interceptionMode", |rng| choose(rng, &["REDIRECT", "TPROXY"]).into()),
        (
            "connectionSettings",
            |_| json!({"profile": "EDGE", "httpIdleTimeout": "60s", "listenerConnectionLimit": 5}),
        ),
        ("unknownField", |_| json!({"a": 1})),
        ("proxyBootstrapTemplatePath", |_| OTHER_TEMPLATE.into()),
        ("customConfigFile", |_| CUSTOM.into()),
    ];
    let mut config = Map::new();
    if is_base {
        config.insert("binaryPath".to_owned(), "./envoy".into());
    }
    for (name, value) in fields {
        if rng.u32(..6) == 0 {
            config.insert((*name).to_owned(), value(rng));
        }
    }
    config.into()
}
