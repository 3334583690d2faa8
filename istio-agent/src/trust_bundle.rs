//! CA certificates that istiod adds to those of the mesh, for meshes of several trust domains. Istio calls the
//! type PCDS; of the configuration, only these certificates are used.

use std::sync::Arc;

use bytes::Bytes;
use istio_certificates::pem;
use tokio::sync::watch;
use tracing::info;
use xds::fields;
use xds_client::OwnType;

use crate::files::Content;

/// The type URL of the configuration.
const TYPE_URL: &str = "type.googleapis.com/istio.mesh.v1alpha1.ProxyConfig";
/// The number of the field `ca_certificates_pem`, of which there may be several.
const CERTIFICATES: u64 = 34;

/// Returns the subscription through which the certificates arrive, and the certificates, as one PEM text.
pub fn subscribe() -> (OwnType, Content<String>) {
    let (sender, bundle) = watch::channel(None);
    let accept = move |message: &Bytes| {
        let found = parse(message)?;
        info!(certificates = pem::certificates(&found).count(), "trust bundle received");
        sender.send_replace(Some(Arc::new(found)));
        Ok(())
    };
    (OwnType { type_url: TYPE_URL, accept: Arc::new(accept) }, bundle)
}

/// Reads an encoded `ProxyConfig`.
fn parse(message: &Bytes) -> Result<String, String> {
    let mut bundle = String::new();
    for field in fields(message) {
        let field = field.map_err(|error| error.to_string())?;
        if field.number != CERTIFICATES {
            continue;
        }
        let text = field.text().map_err(|error| error.to_string())?;
        if pem::certificates(&text).next().is_none() {
            return Err("caCertificatesPem: a text without a certificate".to_owned());
        }
        bundle.extend([text.trim(), "\n"]);
    }
    Ok(bundle)
}

#[cfg(test)]
mod tests;
