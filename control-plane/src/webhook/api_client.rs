//! API server requests of the webhook: the Secret with the CA, and the webhook configuration with
//! the caBundle.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::time::timeout;

use crate::webhook::authority::{Authority, AuthorityError};

/// Timeout of a request to the API server, which may accept connections and never answer.
pub const DEADLINE: Duration = Duration::from_secs(5);
/// Name of the Secret with the CA.
const SECRET: &str = "app-health-webhook-ca";
/// Only key of the Secret: the authority as JSON.
const KEY: &str = "authority.json";

#[derive(Debug, thiserror::Error)]
pub enum ApiClientError {
    #[error("{0}")]
    Kube(#[from] Error),
    #[error("no response within {} s", DEADLINE.as_secs())]
    Deadline,
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
    secrets: Api<Secret>,
    /// Name of the MutatingWebhookConfiguration.
    configuration: String,
}

impl ApiClient {
    pub fn new(client: Client, namespace: &str, configuration: String) -> Self {
        Self { secrets: Api::namespaced(client.clone(), namespace), client, configuration }
    }

    /// Returns the minor version of the API server's Kubernetes 1.x.
    pub async fn minor_version(&self) -> Result<Option<u32>, ApiClientError> {
        let info = within(self.client.apiserver_version()).await?;
        let digits: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
        Ok(digits.parse().ok())
    }

    /// Returns the authority that all replicas share: reads it, creates it if it does not exist,
    /// and advances it when that is due. `published` is the bundle that the API server was last
    /// seen to have.
    pub async fn authority(
        &self,
        now: OffsetDateTime,
        published: Option<&str>,
    ) -> Result<Authority, ApiClientError> {
        let params = PostParams::default();
        let (authority, written) = match within(self.secrets.get_opt(SECRET)).await? {
            None => {
                let created = Authority::new(now)?;
                let metadata = ObjectMeta { name: Some(SECRET.to_owned()), ..ObjectMeta::default() };
                let secret = Secret { metadata, data: data(&created), ..Secret::default() };
                let written = within(self.secrets.create(&params, &secret)).await;
                (created, written)
            }
            Some(secret) => {
                let stored = authority(&secret)?;
                let Some(after) = stored.advance(now, published == Some(stored.bundle().as_str()))? else {
                    return Ok(stored);
                };
                let changed = Secret { data: data(&after), ..secret };
                let written = within(self.secrets.replace(SECRET, &params, &changed)).await;
                (after, written)
            }
        };
        match written {
            Ok(_) => Ok(authority),
            // Another replica wrote it first.
            Err(ApiClientError::Kube(Error::Api(status))) if status.code == 409 => {
                self::authority(&within(self.secrets.get(SECRET)).await?)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes `bundle` to every webhook of the configuration that does not have it; returns whether
    /// one was changed.
    pub async fn publish_bundle(&self, bundle: &str) -> Result<bool, ApiClientError> {
        let configurations: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let configuration = within(configurations.get(&self.configuration)).await?;
        let Some(patch) = bundle_patch(&configuration, bundle) else { return Ok(false) };
        let patch = Patch::Json::<()>(serde_json::from_value(patch).expect("a valid JSON patch"));
        within(configurations.patch(&self.configuration, &PatchParams::default(), &patch)).await?;
        Ok(true)
    }
}

async fn within<T>(response: impl Future<Output = kube::Result<T>>) -> Result<T, ApiClientError> {
    match timeout(DEADLINE, response).await {
        Ok(response) => Ok(response?),
        Err(_) => Err(ApiClientError::Deadline),
    }
}

/// Returns the JSON patch that sets the bundle in every webhook; it fails if the configuration has
/// changed since it was read.
fn bundle_patch(configuration: &MutatingWebhookConfiguration, bundle: &str) -> Option<Value> {
    let current = ByteString(bundle.as_bytes().to_vec());
    let webhooks = configuration.webhooks.iter().flatten().enumerate();
    let missing = webhooks.filter(|(_, webhook)| webhook.client_config.ca_bundle.as_ref() != Some(&current));
    let mut operations: Vec<Value> = missing
        .map(|(index, _)| json!({"op": "add", "path": format!("/webhooks/{index}/clientConfig/caBundle"), "value": STANDARD.encode(bundle)}))
        .collect();
    if operations.is_empty() {
        return None;
    }
    let version = &configuration.metadata.resource_version;
    operations.insert(0, json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    Some(operations.into())
}

fn data(authority: &Authority) -> Option<std::collections::BTreeMap<String, ByteString>> {
    let json = serde_json::to_vec(authority).expect("an authority can be written as JSON");
    Some([(KEY.to_owned(), ByteString(json))].into())
}

fn authority(secret: &Secret) -> Result<Authority, ApiClientError> {
    let content = secret.data.as_ref().and_then(|data| data.get(KEY));
    let content = content.ok_or_else(|| ApiClientError::Secret("missing".to_owned()))?;
    serde_json::from_slice(&content.0).map_err(|error| ApiClientError::Secret(error.to_string()))
}

#[cfg(test)]
mod tests;
