//! The TLS of Envoy's connections to tracers and services.

use serde_json::{Map, Value, json};

use crate::node::Node;

/// The transport socket for `ClientTLSSettings`; `None` if they disable TLS. `sni` is the server name of
/// connections within the mesh that have none of their own.
pub(super) fn transport_socket(settings: &Value, sni: &str, node: &Node, is_http2: bool) -> Option<String> {
    let text = |field: &str| settings.get(field).and_then(Value::as_str).unwrap_or_default();
    let own = |field: &str, other: &str| match node.text(field) {
        "" => text(other).to_owned(),
        own => own.to_owned(),
    };
    let is_in_mesh = text("mode") == "ISTIO_MUTUAL";
    let (certificate, root) = match text("mode") {
        "SIMPLE" => (None, own("TLS_CLIENT_ROOT_CERT", "caCertificates")),
        "MUTUAL" => {
            let chain = own("TLS_CLIENT_CERT_CHAIN", "clientCertificate");
            let key = own("TLS_CLIENT_KEY", "privateKey");
            let has_both = !chain.is_empty() && !key.is_empty();
            (
                has_both.then(|| format!("file-cert:{chain}~{key}")),
                own("TLS_CLIENT_ROOT_CERT", "caCertificates"),
            )
        }
        "ISTIO_MUTUAL" => (Some("default".to_owned()), String::new()),
        _ => return None,
    };
    let root = match (is_in_mesh, root.as_str()) {
        (true, _) => Some("ROOTCA".to_owned()),
        (_, "") => None,
        (_, path) => Some(format!("file-root:{path}")),
    };
    let mut common = Map::new();
    if let Some(name) = certificate {
        common.insert("tls_certificate_sds_secret_configs".to_owned(), json!([secret(&name)]));
    }
    let names = settings.get("subjectAltNames").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<_> = names.map(|name| json!({"exact": name})).collect();
    let mut validation = json!({"default_validation_context": {}});
    if !names.is_empty() {
        validation["default_validation_context"]["match_subject_alt_names"] = names.into();
    }
    if let Some(name) = root {
        validation["validation_context_sds_secret_config"] = secret(&name);
    }
    common.insert("combined_validation_context".to_owned(), validation);
    if is_http2 {
        let protocols = if is_in_mesh { json!(["istio", "h2"]) } else { json!(["h2"]) };
        common.insert("alpn_protocols".to_owned(), protocols);
    }
    let mut context = json!({
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "common_tls_context": common,
    });
    let server_name = if is_in_mesh && text("sni").is_empty() { sni } else { text("sni") };
    if !server_name.is_empty() {
        context["sni"] = server_name.into();
    }
    Some(json!({"name": "envoy.transport_sockets.tls", "typed_config": context}).to_string())
}

/// Where Envoy gets a secret from: the agent, and for the mesh's own without a time limit.
fn secret(name: &str) -> Value {
    let mut source = json!({
        "api_config_source": {
            "api_type": "GRPC",
            "set_node_on_first_message_only": true,
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": "sds-grpc"}}],
        },
        "resource_api_version": "V3",
    });
    if matches!(name, "default" | "ROOTCA") {
        source["initial_fetch_timeout"] = "0s".into();
    }
    json!({"name": name, "sds_config": source})
}
