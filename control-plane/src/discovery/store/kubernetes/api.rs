//! Requests to the API server. Each has a deadline, after which it is sent again.

use std::time::Duration;

use hyper::http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::decision::Step;
use super::leases::Lease;
use super::{entry_writer, object};
use discovery::objects::Key;

/// Deadline of one request. A healthy API server answers within milliseconds.
pub(super) const DEADLINE: Duration = Duration::from_secs(4);
const ENTRIES: &str = "/apis/networking.istio.io/v1/namespaces";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";
/// Label that selects the Leases of discovery replicas.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", "app-health-discovery");

/// Error of a request to the API server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// HTTP status 404.
    #[error("not found")]
    NotFound,
    /// HTTP status 409.
    #[error("conflict")]
    Conflict,
    /// The API server rejected the request.
    #[error("{0}")]
    Rejected(String),
    /// The API server failed, is overloaded, or did not answer in time.
    #[error("{0}")]
    Unreachable(String),
}

/// Client of the API server.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
    /// Namespace of the Leases.
    namespace: String,
}

impl Api {
    pub(super) fn new(client: Client, namespace: String) -> Self {
        Self { client, namespace }
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ApiError> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request =
            Request::builder().method(method).uri(path).header("content-type", "application/json").body(body);
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

    /// Sends one request for a WorkloadEntry.
    pub(super) async fn entry(
        &self,
        key: &Key,
        request: &entry_writer::Request,
    ) -> (entry_writer::ApiResult, Option<ApiError>) {
        let all = format!("{ENTRIES}/{}/workloadentries", key.namespace);
        let one = format!("{all}/{}", key.name);
        let is_delete = matches!(request, entry_writer::Request::Write(Step::Delete { .. }));
        let answer = match request {
            entry_writer::Request::Read => self.send(Method::GET, &one, None).await,
            entry_writer::Request::Write(step) => match step {
                Step::Create(object) => self.send(Method::POST, &all, Some(object)).await,
                Step::Replace(object) => self.send(Method::PUT, &one, Some(object)).await,
                Step::ReplaceStatus(object) => {
                    self.send(Method::PUT, &format!("{one}/status"), Some(object)).await
                }
                Step::Delete { uid, version } => {
                    let options = json!({
                        "apiVersion": "v1", "kind": "DeleteOptions",
                        "preconditions": {"uid": uid, "resourceVersion": version},
                    });
                    self.send(Method::DELETE, &one, Some(&options)).await
                }
                Step::UpToDate | Step::OwnedByOther => Err(ApiError::NotFound),
            },
        };
        match answer {
            Ok(_) if is_delete => (entry_writer::ApiResult::NotFound, None),
            Ok(object) => (entry_writer::ApiResult::Object(Box::new(object::trimmed(object))), None),
            Err(ApiError::NotFound) => (entry_writer::ApiResult::NotFound, None),
            Err(ApiError::Conflict) => (entry_writer::ApiResult::Conflict, None),
            Err(error @ ApiError::Rejected(_)) => (entry_writer::ApiResult::Rejected, Some(error)),
            Err(error @ ApiError::Unreachable(_)) => (entry_writer::ApiResult::Unreachable, Some(error)),
        }
    }

    /// Lists the Leases of all replicas.
    pub(super) async fn leases(&self) -> Result<Vec<Lease>, ApiError> {
        let (name, value) = LABEL;
        let path = format!("{LEASES}/{}/leases?labelSelector={name}%3D{value}", self.namespace);
        let list = self.send(Method::GET, &path, None).await?;
        let items = list.get("items").and_then(Value::as_array).into_iter().flatten();
        let lease = |item: &Value| {
            let holder = item.get("spec").and_then(|spec| spec.get("holderIdentity")).and_then(Value::as_str);
            Some(Lease {
                instance: object::key(item)?.name,
                version: object::version(item)?.to_owned(),
                released: holder.is_none_or(str::is_empty),
            })
        };
        Ok(items.filter_map(lease).collect())
    }

    /// Renews the Lease of `instance`, or releases it if `holder` is `None`. `now` is only
    /// informative.
    pub(super) async fn renew(
        &self,
        instance: &str,
        holder: Option<&str>,
        now: &str,
        valid: Duration,
    ) -> Result<(), ApiError> {
        let all = format!("{LEASES}/{}/leases", self.namespace);
        let one = format!("{all}/{instance}");
        let (name, value) = LABEL;
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": instance, "namespace": self.namespace, "labels": {name: value}},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": valid.as_secs(), "renewTime": now},
        });
        match self.send(Method::GET, &one, None).await {
            // Only this replica writes its Lease, so any version of it is replaced.
            Ok(there) => {
                lease["metadata"]["resourceVersion"] = object::version(&there).into();
                self.send(Method::PUT, &one, Some(&lease)).await.map(drop)
            }
            Err(ApiError::NotFound) => self.send(Method::POST, &all, Some(&lease)).await.map(drop),
            Err(error) => Err(error),
        }
    }

    /// Deletes a Lease if it still has this version.
    pub(super) async fn delete_lease(&self, instance: &str, version: &str) -> Result<(), ApiError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"resourceVersion": version},
        });
        let path = format!("{LEASES}/{}/leases/{instance}", self.namespace);
        self.send(Method::DELETE, &path, Some(&options)).await.map(drop)
    }
}
