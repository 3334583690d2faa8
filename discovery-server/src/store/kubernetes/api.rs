//! Requests to the API server. Each has a deadline, after which it is sent again.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as LeaseObject, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{DeleteParams, GetParams, ListParams, ObjectList, PostParams, Preconditions};
use kube::core::Request as Url;
use kube::core::request::Error as BuildError;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::leases::Lease;
use super::object;
use super::request::{ApiError, Request};
use discovery::objects::Key;

/// Deadline of one request. A healthy API server answers within milliseconds.
pub(super) const DEADLINE: Duration = Duration::from_secs(4);
/// Label that selects the Leases of discovery replicas.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "app-health-discovery");

/// Client of the API server.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    /// URL of the Leases in this replica's namespace.
    leases: String,
}

impl Api {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { client, leases: format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases") }
    }

    async fn send<T: DeserializeOwned>(
        &self,
        request: Result<hyper::Request<Vec<u8>>, BuildError>,
    ) -> Result<T, ApiError> {
        let request = request.map_err(|error| ApiError::Rejected(error.to_string()))?;
        match timeout(DEADLINE, self.client.request(request)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(kube::Error::Api(status))) => Err(match status.code {
                404 => ApiError::NotFound,
                409 => ApiError::Conflict,
                429 | 500.. => ApiError::Unreachable(status.message.clone()),
                _ => ApiError::Rejected(status.message.clone()),
            }),
            Ok(Err(error)) => Err(ApiError::Unreachable(error.to_string())),
            Err(_) => Err(ApiError::Unreachable(format!("no response within {} s", DEADLINE.as_secs()))),
        }
    }

    /// Sends one request for a WorkloadEntry and returns its current state; after a deletion this is
    /// [`ApiError::NotFound`].
    pub(super) async fn entry(&self, key: &Key, request: &Request) -> Result<Value, ApiError> {
        let Key { namespace, name } = key;
        let url = Url::new(format!("/apis/networking.istio.io/v1/namespaces/{namespace}/workloadentries"));
        let params = PostParams::default();
        let bytes = |object: &Value| object.to_string().into_bytes();
        let built = match request {
            Request::Read => url.get(name, &GetParams::default()),
            Request::Create(object) => url.create(&params, bytes(object)),
            Request::Replace(object) => url.replace(name, &params, bytes(object)),
            Request::ReplaceStatus(object) => url.replace_subresource("status", name, &params, bytes(object)),
            Request::Delete { uid, version } => {
                self.send::<Value>(url.delete(name, &exactly(Some(uid.clone()), version))).await?;
                return Err(ApiError::NotFound);
            }
        };
        self.send(built).await.map(object::trimmed)
    }

    /// Lists the Leases of all replicas.
    pub(super) async fn leases(&self) -> Result<Vec<Lease>, ApiError> {
        let params = ListParams::default().labels(&format!("{}={}", LABEL.0, LABEL.1));
        let list: ObjectList<LeaseObject> = self.send(Url::new(&self.leases).list(&params)).await?;
        let lease = |LeaseObject { metadata, spec }: LeaseObject| {
            let holder = spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            let (instance, version) = (metadata.name?, metadata.resource_version?);
            Some(Lease { instance, version, released: holder.is_empty() })
        };
        Ok(list.items.into_iter().filter_map(lease).collect())
    }

    /// Renews the Lease of `instance`, or releases it if `holder` is `None`.
    pub(super) async fn renew(
        &self,
        instance: &str,
        holder: Option<&str>,
        valid_seconds: u64,
    ) -> Result<(), ApiError> {
        let url = Url::new(&self.leases);
        let current = match self.send::<LeaseObject>(url.get(instance, &GetParams::default())).await {
            Ok(current) => Some(current),
            Err(ApiError::NotFound) => None,
            Err(error) => return Err(error),
        };
        let lease = LeaseObject {
            metadata: ObjectMeta {
                name: Some(instance.to_owned()),
                labels: Some([(LABEL.0.to_owned(), LABEL.1.to_owned())].into()),
                // Only this replica writes its Lease, so any version of it is replaced.
                resource_version: current.as_ref().and_then(|lease| lease.metadata.resource_version.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: i32::try_from(valid_seconds).ok(),
                // Only informative.
                renew_time: Some(MicroTime(Timestamp::now())),
                ..LeaseSpec::default()
            }),
        };
        let bytes = serde_json::to_vec(&lease).expect("a Lease can be written as JSON");
        let params = PostParams::default();
        let request = if current.is_some() {
            url.replace(instance, &params, bytes)
        } else {
            url.create(&params, bytes)
        };
        self.send::<LeaseObject>(request).await.map(drop)
    }

    /// Deletes a Lease if it still has this version.
    pub(super) async fn delete_lease(&self, instance: &str, version: &str) -> Result<(), ApiError> {
        let request = Url::new(&self.leases).delete(instance, &exactly(None, version));
        self.send::<Value>(request).await.map(drop)
    }
}

fn exactly(uid: Option<String>, version: &str) -> DeleteParams {
    DeleteParams::default().preconditions(Preconditions { uid, resource_version: Some(version.to_owned()) })
}
