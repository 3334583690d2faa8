//! The fields of `istio.mesh.v1alpha1.ProxyConfig`.

use crate::proto::Field;
use crate::proto::Type::{
    self, Bool, Double, Duration, Enum, Int32, Int64, List, Map, Message, Optional, Text, Uint32,
};

const fn field(name: &'static str, kind: Type) -> Field {
    Field { name, kind, oneof: &[] }
}

const fn one_of(name: &'static str, kind: Type, oneof: &'static [&'static str]) -> Field {
    Field { name, kind, oneof }
}

const TEXTS: Type = List(&Text);
const BOOL: Type = Optional(&Bool);
const INT32: Type = Optional(&Int32);

pub(crate) const PROXY_CONFIG: &[Field] = &[
    field("configPath", Text),
    field("binaryPath", Text),
    one_of("serviceCluster", Text, &["tracingServiceName"]),
    one_of("tracingServiceName", Enum(TRACING_SERVICE_NAME), &["serviceCluster"]),
    field("drainDuration", Duration),
    field("discoveryAddress", Text),
    field("discoveryRefreshDelay", Duration),
    field("zipkinAddress", Text),
    field("statsdUdpAddress", Text),
    field("envoyMetricsServiceAddress", Text),
    field("proxyAdminPort", Int32),
    field("availabilityZone", Text),
    field("controlPlaneAuthPolicy", Enum(&[("NONE", 0), ("MUTUAL_TLS", 1), ("INHERIT", 1000)])),
    field("customConfigFile", Text),
    field("statNameLength", Int32),
    field("concurrency", INT32),
    field("proxyBootstrapTemplatePath", Text),
    field("interceptionMode", Enum(&[("REDIRECT", 0), ("TPROXY", 1), ("NONE", 2)])),
    field("tracing", Message(TRACING)),
    field("sds", Message(&[field("enabled", Bool), field("k8sSaJwtPath", Text)])),
    field("envoyAccessLogService", Message(REMOTE_SERVICE)),
    field("envoyMetricsService", Message(REMOTE_SERVICE)),
    field("proxyMetadata", Map(&Text)),
    field("runtimeValues", Map(&Text)),
    field("statusPort", Int32),
    field("extraStatTags", TEXTS),
    field("gatewayTopology", Message(TOPOLOGY)),
    field("terminationDrainDuration", Duration),
    field("meshId", Text),
    field("readinessProbe", Message(READINESS_PROBE)),
    field(
        "proxyStatsMatcher",
        Message(&[
            field("inclusionPrefixes", TEXTS),
            field("inclusionSuffixes", TEXTS),
            field("inclusionRegexps", TEXTS),
        ]),
    ),
    field("holdApplicationUntilProxyStarts", BOOL),
    field("caCertificatesPem", TEXTS),
    field("image", Message(&[field("imageType", Text)])),
    field(
        "privateKeyProvider",
        Message(&[
            one_of("cryptomb", Message(KEY_PROVIDER), &["qat"]),
            one_of("qat", Message(KEY_PROVIDER), &["cryptomb"]),
        ]),
    ),
    field("proxyHeaders", Message(PROXY_HEADERS)),
    field("fileFlushInterval", Duration),
    field("fileFlushMinSizeKb", Uint32),
    field("statsCompression", BOOL),
    field("connectionSettings", Message(CONNECTION_SETTINGS)),
];

const TRACING_SERVICE_NAME: &[(&str, i32)] =
    &[("APP_LABEL_AND_NAMESPACE", 0), ("CANONICAL_NAME_ONLY", 1), ("CANONICAL_NAME_AND_NAMESPACE", 2)];

const ADDRESS: &[Field] = &[field("address", Text)];

const TRACING: &[Field] = &[
    one_of("zipkin", Message(ADDRESS), &["lightstep", "datadog", "stackdriver", "openCensusAgent"]),
    one_of(
        "lightstep",
        Message(&[field("address", Text), field("accessToken", Text)]),
        &["zipkin", "datadog", "stackdriver", "openCensusAgent"],
    ),
    one_of("datadog", Message(ADDRESS), &["zipkin", "lightstep", "stackdriver", "openCensusAgent"]),
    one_of(
        "stackdriver",
        Message(&[
            field("debug", Bool),
            field("maxNumberOfAttributes", Optional(&Int64)),
            field("maxNumberOfAnnotations", Optional(&Int64)),
            field("maxNumberOfMessageEvents", Optional(&Int64)),
        ]),
        &["zipkin", "lightstep", "datadog", "openCensusAgent"],
    ),
    one_of(
        "openCensusAgent",
        Message(&[field("address", Text), field("context", List(&Enum(TRACE_CONTEXT)))]),
        &["zipkin", "lightstep", "datadog", "stackdriver"],
    ),
    field("customTags", Map(&Message(CUSTOM_TAG))),
    field("maxPathTagLength", Uint32),
    field("sampling", Double),
    field("tlsSettings", Message(TLS_SETTINGS)),
    field("enableIstioTags", BOOL),
];

const TRACE_CONTEXT: &[(&str, i32)] =
    &[("UNSPECIFIED", 0), ("W3C_TRACE_CONTEXT", 1), ("GRPC_BIN", 2), ("CLOUD_TRACE_CONTEXT", 3), ("B3", 4)];

const NAME_AND_DEFAULT: &[Field] = &[field("name", Text), field("defaultValue", Text)];

const CUSTOM_TAG: &[Field] = &[
    one_of("literal", Message(&[field("value", Text)]), &["environment", "header"]),
    one_of("environment", Message(NAME_AND_DEFAULT), &["literal", "header"]),
    one_of("header", Message(NAME_AND_DEFAULT), &["literal", "environment"]),
];

const TLS_SETTINGS: &[Field] = &[
    field("mode", Enum(&[("DISABLE", 0), ("SIMPLE", 1), ("MUTUAL", 2), ("ISTIO_MUTUAL", 3)])),
    field("clientCertificate", Text),
    field("privateKey", Text),
    field("caCertificates", Text),
    field("credentialName", Text),
    field("subjectAltNames", TEXTS),
    field("sni", Text),
    field("insecureSkipVerify", BOOL),
    field("caCrl", Text),
];

const REMOTE_SERVICE: &[Field] = &[
    field("address", Text),
    field("tlsSettings", Message(TLS_SETTINGS)),
    field(
        "tcpKeepalive",
        Message(&[field("probes", Uint32), field("time", Duration), field("interval", Duration)]),
    ),
];

const FORWARD_CLIENT_CERT: &[(&str, i32)] = &[
    ("UNDEFINED", 0),
    ("SANITIZE", 1),
    ("FORWARD_ONLY", 2),
    ("APPEND_FORWARD", 3),
    ("SANITIZE_SET", 4),
    ("ALWAYS_FORWARD_ONLY", 5),
];

const TOPOLOGY: &[Field] = &[
    field("numTrustedProxies", Uint32),
    field("forwardClientCertDetails", Enum(FORWARD_CLIENT_CERT)),
    field("proxyProtocol", Message(&[])),
];

const READINESS_PROBE: &[Field] = &[
    field("initialDelaySeconds", Int32),
    field("timeoutSeconds", Int32),
    field("periodSeconds", Int32),
    field("successThreshold", Int32),
    field("failureThreshold", Int32),
    one_of(
        "httpGet",
        Message(&[
            field("path", Text),
            field("port", Uint32),
            field("host", Text),
            field("scheme", Text),
            field("httpHeaders", List(&Message(&[field("name", Text), field("value", Text)]))),
        ]),
        &["tcpSocket", "exec", "grpc"],
    ),
    one_of("tcpSocket", Message(&[field("host", Text), field("port", Uint32)]), &["httpGet", "exec", "grpc"]),
    one_of("exec", Message(&[field("command", TEXTS)]), &["httpGet", "tcpSocket", "grpc"]),
    one_of(
        "grpc",
        Message(&[field("port", Uint32), field("service", Text)]),
        &["httpGet", "tcpSocket", "exec"],
    ),
];

const KEY_PROVIDER: &[Field] = &[field("pollDelay", Duration), field("fallback", BOOL)];

const DISABLED: &[Field] = &[field("disabled", BOOL)];
const ENABLED: &[Field] = &[field("enabled", BOOL)];

const PROXY_HEADERS: &[Field] = &[
    field("forwardedClientCert", Enum(FORWARD_CLIENT_CERT)),
    field(
        "setCurrentClientCertDetails",
        Message(&[
            field("subject", BOOL),
            field("cert", BOOL),
            field("chain", BOOL),
            field("dns", BOOL),
            field("uri", BOOL),
        ]),
    ),
    field("requestId", Message(DISABLED)),
    field("server", Message(&[field("disabled", BOOL), field("value", Text)])),
    field("attemptCount", Message(DISABLED)),
    field("envoyDebugHeaders", Message(DISABLED)),
    field("metadataExchangeHeaders", Message(&[field("mode", Enum(&[("UNDEFINED", 0), ("IN_MESH", 1)]))])),
    field("preserveHttp1HeaderCase", BOOL),
    field("xForwardedHost", Message(ENABLED)),
    field("xForwardedPort", Message(ENABLED)),
];

const CONNECTION_SETTINGS: &[Field] = &[
    field("profile", Enum(&[("SIDECAR", 0), ("EDGE", 1)])),
    field("listenerPerConnectionBufferLimitBytes", INT32),
    field("clusterPerConnectionBufferLimitBytes", INT32),
    field("httpIdleTimeout", Duration),
    field("httpMaxConnectionDuration", Duration),
    field("httpDrainTimeout", Duration),
    field("httpRequestTimeout", Duration),
    field("httpRequestHeadersTimeout", Duration),
    field("httpStreamIdleTimeout", Duration),
    field("httpMaxStreamDuration", Duration),
    field("httpMaxConcurrentStreams", INT32),
    field("http2InitialStreamWindowSize", INT32),
    field("http2InitialConnectionWindowSize", INT32),
    field(
        "httpHeadersWithUnderscoresAction",
        Enum(&[
            ("HEADERS_WITH_UNDERSCORES_UNSPECIFIED", 0),
            ("HEADERS_WITH_UNDERSCORES_ALLOW", 1),
            ("HEADERS_WITH_UNDERSCORES_REJECT_REQUEST", 2),
            ("HEADERS_WITH_UNDERSCORES_DROP_HEADER", 3),
        ]),
    ),
    field("httpMergeSlashes", BOOL),
    field(
        "httpPathWithEscapedSlashesAction",
        Enum(&[
            ("PATH_WITH_ESCAPED_SLASHES_UNSPECIFIED", 0),
            ("KEEP_UNCHANGED", 1),
            ("REJECT_REQUEST", 2),
            ("UNESCAPE_AND_REDIRECT", 3),
            ("UNESCAPE_AND_FORWARD", 4),
        ]),
    ),
    field("listenerConnectionLimit", INT32),
    field("globalDownstreamConnectionLimit", INT32),
];
