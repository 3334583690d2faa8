//! The cases of Istio's own tests of bootstraps: `pkg/bootstrap/instance_test.go::TestGolden` of Istio 1.31. Their
//! ProxyConfigs are read from Istio's module.

use std::collections::BTreeMap;

use serde_json::Value;

use super::generated::Case;
use istio_tests::istio;

/// A case, the ProxyConfig that it uses, variables, and annotations.
type Golden = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str)],
);

const ARGUMENTS: [&str; 5] = [
    "sidecar",
    "--domain",
    "shop.svc.cluster.local",
    "--proxyLogLevel=warning",
    "--proxyComponentLogLevel=misc:error",
];
const MAX_CONNECTIONS: &str = "ISTIO_META_GLOBAL_DOWNSTREAM_MAX_CONNECTIONS";
const RUNNING: &[(&str, &str)] = &[
    ("ISTIO_META_ISTIO_PROXY_SHA", "istio-proxy:sha"),
    ("ISTIO_META_INTERCEPTION_MODE", "REDIRECT"),
    ("ISTIO_META_ISTIO_VERSION", "release-3.1"),
    ("ISTIO_META_POD_NAME", "svc-0-0-0-6944fb884d-4pgx8"),
    ("POD_NAME", "svc-0-0-0-6944fb884d-4pgx8"),
    ("POD_NAMESPACE", "test"),
    ("INSTANCE_IP", "10.10.10.1"),
    (
        "ISTIO_METAJSON_LABELS",
        r#"{"version": "v1alpha1", "app": "test", "istio-locality":"regionA.zoneB.sub_zoneC"}"#,
    ),
];
const INSECURE: &[(&str, &str)] = &[("istio.io/insecurepath", r#"{"paths":["/metrics","/live"]}"#)];
const FLUSH: &str = "sidecar.istio.io/statsFlushInterval";
const EVICTION: &str = "sidecar.istio.io/statsEvictionInterval";

const CASES: [Golden; 28] = [
    ("xdsproxy", "xdsproxy", &[], &[]),
    ("auth", "auth", &[], &[]),
    ("authsds", "authsds", &[], &[]),
    ("default", "default", &[], &[]),
    ("ambient", "ambient", &[("ISTIO_META_ENABLE_HBONE", "true")], &[]),
    ("explicit_internal_address", "explicit_internal_address", &[], &[]),
    ("running", "running", RUNNING, INSECURE),
    ("runningsds", "runningsds", RUNNING, INSECURE),
    ("tracing_lightstep", "tracing_lightstep", &[], &[]),
    ("tracing_zipkin", "tracing_zipkin", &[], &[]),
    ("tracing_datadog", "tracing_datadog", &[], &[]),
    ("metrics_no_statsd", "metrics_no_statsd", &[], &[]),
    ("tracing_none", "tracing_none", &[], &[]),
    ("all", "all", &[], &[]),
    (
        "stats_inclusion",
        "stats_inclusion",
        &[],
        &[
            ("sidecar.istio.io/statsInclusionPrefixes", "prefix1,prefix2,http.{pod_ip}_"),
            (
                "sidecar.istio.io/statsInclusionSuffixes",
                "suffix1,suffix2,upstream_rq_1xx,downstream_cx_total",
            ),
            (
                "sidecar.istio.io/statsInclusionRegexps",
                r"http.[0-9]*\.[0-9]*\.[0-9]*\.[0-9]*_8080.downstream_rq_time",
            ),
            ("sidecar.istio.io/extraStatTags", "dlp_status,dlp_error"),
            (
                "sidecar.istio.io/statsHistogramBuckets",
                r#"{"istio":[1,5,10,50,100,500,1000,5000,10000],"envoy":[1,5,10,25,50,100,250,500]}"#,
            ),
        ],
    ),
    ("tracing_tls", "tracing_tls", &[], &[]),
    ("tracing_tls_custom_sni", "tracing_tls_custom_sni", &[], &[]),
    (
        "lrs",
        "lrs",
        &[("ISTIO_META_LOAD_STATS_CONFIG_JSON", r#"{"api_type": "GRPC", "transport_api_version": "V3"}"#)],
        &[],
    ),
    ("stats_flush_interval", "stats_flush_interval", &[], &[(FLUSH, "10s")]),
    ("stats_eviction_interval", "stats_eviction_interval", &[], &[(EVICTION, "10s")]),
    ("invalid_stats_eviction_interval", "invalid_stats_eviction_interval", &[], &[(EVICTION, "11s")]),
    ("stats_interval", "stats_interval", &[], &[(FLUSH, "10s"), (EVICTION, "20s")]),
    (
        "global_downstream_max_connections_meta",
        "global_downstream_max_connections_meta",
        &[(MAX_CONNECTIONS, "10000")],
        &[],
    ),
    ("global_downstream_max_connections_runtime", "global_downstream_max_connections_runtime", &[], &[]),
    (
        "global_downstream_max_connections_both",
        "global_downstream_max_connections_both",
        &[(MAX_CONNECTIONS, "20000")],
        &[],
    ),
    ("stats_compression", "stats_compression", &[], &[]),
    (
        "secure_metrics",
        "default",
        &[("ENVOY_SECURE_METRICS_PORT", "15091"), ("ENVOY_SECURE_MERGED_METRICS_PORT", "15092")],
        &[],
    ),
    ("legacy_stats_tags_regex", "legacy_stats_tags_regex", &[], &[]),
];

/// Returns the cases with their names.
pub(super) fn cases() -> Vec<(&'static str, Case)> {
    CASES
        .iter()
        .map(|(name, config, variables, annotations)| (*name, case(config, variables, annotations)))
        .collect()
}

fn case(config: &str, variables: &[(&str, &str)], annotations: &[(&str, &str)]) -> Case {
    let text = std::fs::read_to_string(istio(&format!("configs/{config}.json"))).expect("a file");
    let mut config: Value = serde_json::from_str(&text).expect("JSON");
    config["binaryPath"] = "./envoy".into();
    config["configPath"] = "./etc/istio/proxy".into();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut environment: Vec<(String, String)> =
        [("POD_NAME", "bar"), ("POD_NAMESPACE", "foo"), ("INSTANCE_IP", "10.3.3.3")]
            .iter()
            .map(owned)
            .collect();
    environment.extend(variables.iter().map(owned));
    environment.push(("PROXY_CONFIG".to_owned(), config.to_string()));
    let annotations: BTreeMap<String, String> = annotations.iter().map(owned).collect();
    Case {
        arguments: ARGUMENTS.map(str::to_owned).into(),
        environment,
        files: BTreeMap::new(),
        labels: None,
        annotations: (!annotations.is_empty()).then_some(annotations),
    }
}
