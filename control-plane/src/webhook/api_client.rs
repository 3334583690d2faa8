//! API server requests of the webhook: the Secret with the CA, and the webhook configuration with
//! the caBundle. Objects are JSON values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::webhook::authority::{Authority, AuthorityError};

/// Name of the Secret with the CA.
const SECRET: &str = "app-health-webhook-ca";
/// Only key of the Secret: the authority as JSON.
const KEY: &str = "authority.json";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Error of a request to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ApiClientError {
    /// The request failed or was rejected.
    #[error("{0}")]
    Kube(#[from] kube::Error),
    /// The CA cannot be created or parsed.
    #[error("{0}")]
    Authority(#[from] AuthorityError),
    /// The Secret exists but its content is invalid.
    #[error("secret {SECRET}: {KEY}: {0}")]
    Secret(String),
}

/// Client of the API server, with the names of the objects.
#[derive(Clone)]
pub struct ApiClient {
    client: Client,
    namespace: String,
    configuration: String,
}

impl ApiClient {
    /// Creates a client; `configuration` is the name of the MutatingWebhookConfiguration.
    pub fn new(client: Client, namespace: String, configuration: String) -> Self {
        Self { client, namespace, configuration }
    }

    /// Returns the minor version of the API server's Kubernetes 1.x.
    pub async fn minor_version(&self) -> Result<Option<u32>, ApiClientError> {
        let info = self.client.apiserver_version().await?;
        let digits: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
        Ok(digits.parse().ok())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request =
            Request::builder().method(method).uri(path).header("content-type", content_type).body(body);
        self.client.request(request.map_err(kube::Error::HttpError)?).await
    }

    fn secrets(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", self.namespace)
    }

    /// Returns the authority that all replicas share: reads it, creates it if it does not exist,
    /// and advances it when that is due. `published` is the bundle that the API server was last
    /// seen to have.
    pub async fn authority(
        &self,
        now: OffsetDateTime,
        published: Option<&str>,
    ) -> Result<Authority, ApiClientError> {
        let path = format!("{}/{SECRET}", self.secrets());
        let secret = match self.send(Method::GET, &path, "application/json", None).await {
            Ok(secret) => secret,
            Err(error) if is(&error, 404) => {
                let created = Authority::new(now)?;
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
                    "metadata": {"name": SECRET}, "data": {KEY: encoded(&created)},
                });
                match self.send(Method::POST, &self.secrets(), "application/json", Some(&secret)).await {
                    Ok(_) => return Ok(created),
                    // Another replica created it first.
                    Err(error) if is(&error, 409) => {
                        self.send(Method::GET, &path, "application/json", None).await?
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        };
        let stored = decoded(&secret)?;
        let Some(after) = stored.advance(now, published == Some(stored.bundle().as_str()))? else {
            return Ok(stored);
        };
        let mut changed = secret;
        changed["data"][KEY] = encoded(&after).into();
        match self.send(Method::PUT, &path, "application/json", Some(&changed)).await {
            Ok(_) => Ok(after),
            Err(error) if is(&error, 409) => {
                decoded(&self.send(Method::GET, &path, "application/json", None).await?)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes `bundle` to every webhook of the configuration that does not have it; returns whether
    /// one was changed.
    pub async fn publish_bundle(&self, bundle: &str) -> Result<bool, ApiClientError> {
        let path = format!("{CONFIGURATIONS}/{}", self.configuration);
        let configuration = self.send(Method::GET, &path, "application/json", None).await?;
        let Some(patch) = bundle_patch(&configuration, bundle) else { return Ok(false) };
        self.send(Method::PATCH, &path, "application/json-patch+json", Some(&patch)).await?;
        Ok(true)
    }
}

/// Returns the JSON patch that sets the bundle in every webhook; it fails if the configuration has
/// changed since it was read.
fn bundle_patch(configuration: &Value, bundle: &str) -> Option<Value> {
    let bundle = STANDARD.encode(bundle);
    let entries = configuration["webhooks"].as_array()?.iter().enumerate();
    let missing = entries.filter(|(_, entry)| entry["clientConfig"]["caBundle"] != bundle.as_str());
    let mut operations: Vec<Value> = missing
        .map(|(index, _)| json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": bundle}))
        .collect();
    if operations.is_empty() {
        return None;
    }
    let version = &configuration["metadata"]["resourceVersion"];
    operations.insert(0, json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    Some(operations.into())
}

fn encoded(authority: &Authority) -> String {
    STANDARD.encode(serde_json::to_string(authority).expect("an authority can be written as JSON"))
}

fn decoded(secret: &Value) -> Result<Authority, ApiClientError> {
    let text = secret["data"][KEY].as_str().ok_or_else(|| ApiClientError::Secret("missing".to_owned()))?;
    let bytes = STANDARD.decode(text).map_err(|error| ApiClientError::Secret(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| ApiClientError::Secret(error.to_string()))
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests;
