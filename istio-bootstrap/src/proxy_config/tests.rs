use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ProxyConfig;

fn merged(layers: &[Value]) -> Result<Value, String> {
    let mut config = ProxyConfig(serde_json::Map::new());
    for layer in layers {
        config.merge(layer).map_err(|error| error.to_string())?;
    }
    Ok(config.as_json().clone().into())
}

#[test]
fn a_layer_replaces_whole_fields() {
    let cases = [
        (
            json!({"tracing": {"sampling": 5}}),
            json!({"tracing": {"zipkin": {"address": "a:1"}}}),
            json!({"tracing": {"zipkin": {"address": "a:1"}}}),
        ),
        (
            json!({"proxyMetadata": {"A": "1", "B": "2"}}),
            json!({"proxyMetadata": {"B": "3"}}),
            json!({"proxyMetadata": {"A": "1", "B": "3"}}),
        ),
        (
            json!({"runtimeValues": {"A": "1"}}),
            json!({"runtimeValues": {"B": "3"}}),
            json!({"runtimeValues": {"B": "3"}}),
        ),
        (
            json!({"proxyHeaders": {"server": {"value": "x"}, "xForwardedHost": {"enabled": true}}}),
            json!({"proxyHeaders": {"attemptCount": {}}}),
            json!({"proxyHeaders": {"server": {"value": "x"}, "attemptCount": {}}}),
        ),
        (
            json!({"serviceCluster": "a"}),
            json!({"tracingServiceName": 0}),
            json!({"tracingServiceName": "APP_LABEL_AND_NAMESPACE"}),
        ),
        (json!({"statusPort": 15020}), json!({"status_port": 0}), json!({})),
        (json!({"statusPort": 15020}), json!({"statusPort": null, "other": 1}), json!({"statusPort": 15020})),
        (
            json!({}),
            json!({"concurrency": 0, "drainDuration": "1m0.5s"}),
            json!({"concurrency": 0, "drainDuration": "60.500s"}),
        ),
        (json!({}), json!({"statusPort": "15120"}), json!({"statusPort": 15120})),
    ];
    for (base, layer, expected) in cases {
        assert_eq!(merged(&[base, layer.clone()]), Ok(expected), "{layer}");
    }
}

#[test]
fn a_value_of_a_wrong_type_is_named_with_its_fields() {
    let cases = [
        (json!([]), "the document is not an object"),
        (json!({"statusPort": 1.5}), "statusPort is not a number of 32 bits"),
        (json!({"statusPort": 1_u64 << 40}), "statusPort is not a number of 32 bits"),
        (
            json!({"tracing": {"tlsSettings": {"mode": "SOME"}}}),
            "tracing.tlsSettings.mode is not a known word",
        ),
        (json!({"proxyMetadata": {"A": 1}}), "proxyMetadata.A is not a text"),
        (json!({"drainDuration": "soon"}), "drainDuration is not a duration"),
        (json!({"extraStatTags": "a"}), "extraStatTags is not a list"),
        (
            json!({"holdApplicationUntilProxyStarts": "true"}),
            "holdApplicationUntilProxyStarts is not a boolean",
        ),
    ];
    for (layer, expected) in cases {
        assert_eq!(merged(&[layer]), Err(expected.to_owned()));
    }
}

#[test]
fn annotations_replace_the_address_and_the_port() {
    let annotation = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let mut config = ProxyConfig::default();
    let mut annotate =
        |key: &str, value: &str| config.annotate(&annotation(key, value)).map_err(|error| error.to_string());
    assert_eq!(annotate("sidecar.istio.io/discoveryAddress", "a:1"), Ok(()));
    assert_eq!(annotate("status.sidecar.istio.io/port", "15120"), Ok(()));
    let refused = "statusPort is not a number of 32 bits".to_owned();
    assert_eq!(annotate("status.sidecar.istio.io/port", "x"), Err(refused));
    assert_eq!((config.text("discoveryAddress"), &config.as_json()["statusPort"]), ("a:1", &json!(15120)));
    config.limit_concurrency(2);
    config.limit_concurrency(4);
    assert_eq!(config.as_json()["concurrency"], 2);
}
