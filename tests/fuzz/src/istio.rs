//! Feeds arbitrary configuration of a Pod, and arbitrary answers of istiod's CA, to the code that stands in the
//! place of Istio's agent.

use std::time::UNIX_EPOCH;

use bytes::Bytes;
use istio_agent::yaml;
use istio_bootstrap::downward_api;
use istio_bootstrap::node::{Node, Sources};
use istio_bootstrap::parameters;
use istio_bootstrap::proxy_config::ProxyConfig;
use istio_certificates::issued::Issued;
use istio_certificates::{ca, pem};
use serde_json::json;

/// What separates the parts of an input.
const SEPARATOR: u8 = 0;
/// The largest bootstrap, as a multiple of the input's size: a range writes its content for each element.
const GROWTH: usize = 1 << 20;

/// Renders a bootstrap of three parts: annotations as the downward API writes them, a ProxyConfig as YAML, and a
/// template. The result is the same again, and a template without actions is returned as it is.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn pod_configuration(bytes: &[u8]) {
    let mut parts = bytes.splitn(3, |byte| *byte == SEPARATOR).map(|part| String::from_utf8_lossy(part));
    let [annotations, config, template] = [(); 3].map(|()| parts.next().unwrap_or_default().into_owned());
    let annotations = downward_api::parse(&annotations).ok();
    let mut merged = ProxyConfig::default();
    let layer = yaml::parse(&config).unwrap_or_else(|_| json!({}));
    if merged.merge(&layer).is_err() || annotations.iter().any(|found| merged.annotate(found).is_err()) {
        return;
    }
    let sources = Sources {
        environment: vec![("POD_NAME".to_owned(), "web".to_owned())],
        labels: annotations.clone(),
        annotations,
        addresses: vec!["10.0.0.1".to_owned()],
        istio_version: "1.31.0".to_owned(),
        domain: "shop.svc.cluster.local".to_owned(),
        outlier_log_path: String::new(),
        log_as_json: false,
        only_file_credentials: false,
    };
    let Ok(node) = Node::new(&sources, &merged) else { return };
    let Ok(rendered) = parameters::bootstrap(&template, &sources, &merged, &node) else { return };
    assert!(rendered.len() <= GROWTH * bytes.len().max(1), "{} bytes of {}", rendered.len(), bytes.len());
    let again = parameters::bootstrap(&template, &sources, &merged, &node).expect("it was rendered before");
    assert_eq!(rendered, again);
    if !template.contains("{{") {
        assert_eq!(rendered, template);
    }
}

/// Reads an answer of the CA. CA certificates stay the same when they are sorted again.
///
/// # Panics
/// Panics if they do not.
pub fn ca_answer(bytes: &[u8]) {
    let Ok(chain) = ca::decode_response(&Bytes::copy_from_slice(bytes)) else { return };
    assert!(chain.len() >= 2);
    let roots = pem::roots(chain.iter().map(String::as_str));
    assert_eq!(pem::roots([roots.as_str()]), roots);
    // No key belongs to an arbitrary certificate.
    let key = chain.first().cloned().unwrap_or_default();
    if let Ok(issued) = Issued::new(&chain, key, UNIX_EPOCH) {
        assert!(issued.is_valid(UNIX_EPOCH) && pem::certificates(&issued.roots).next().is_some());
    }
}
