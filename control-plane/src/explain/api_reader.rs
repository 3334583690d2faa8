//! Reads from the API server. Each request has a deadline, and a refused one is a result.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, StatusCode};
use kube::Client;
use kube::api::ListParams;
use kube::client::Body;
use kube::core::Request as Url;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use ::explain::situation::{Fetched, ProbeResult};
use serving::exit::Failure;

/// Maximum size of a response in bytes: a list of events, or all metrics of an Envoy.
const LIMIT: usize = 64 << 20;
/// How much of the response to a probe is read, in bytes; kubelet reads 10 KiB.
const PROBE_LIMIT: usize = 16 << 10;

/// Reads objects of one namespace.
#[derive(Clone)]
pub(super) struct ApiReader {
    client: Client,
    pub(super) namespace: String,
    deadline: Duration,
}

impl ApiReader {
    pub(super) fn new(client: Client, namespace: &str, deadline: Duration) -> Self {
        Self { client, namespace: namespace.to_owned(), deadline }
    }

    /// Returns the path of a namespaced resource: `/api/v1/namespaces/shop/pods`.
    pub(super) fn path(&self, (group, resource): (&str, &str)) -> String {
        let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
        format!("{root}/namespaces/{}/{resource}", self.namespace)
    }

    /// Reads the object that everything else depends on.
    ///
    /// # Errors
    /// Fails if the API server does not respond, or does not know the user.
    pub(super) async fn first(&self, path: &str) -> Result<Fetched<Value>, Failure> {
        let unavailable = |error: String| Failure::Unavailable(format!("API server: {error}"));
        match self.send(get(path), self.deadline, whole).await {
            Ok((StatusCode::UNAUTHORIZED, _)) => {
                Err(unavailable("401: it does not accept the credentials of the kubeconfig".to_owned()))
            }
            Ok(response) => Ok(fetched(response, object)),
            Err(error) => Err(unavailable(error)),
        }
    }

    pub(super) async fn object(&self, path: &str) -> Fetched<Value> {
        self.read(get(path), object).await
    }

    /// Reads the items of a list.
    pub(super) async fn list(&self, path: &str, params: &ListParams) -> Fetched<Vec<Value>> {
        match Url::new(path).list(params) {
            Ok(request) => self.read(request, items).await,
            Err(error) => Fetched::Failed(error.to_string()),
        }
    }

    pub(super) async fn text(&self, path: &str) -> Fetched<String> {
        let text = |body: &Bytes| Ok(String::from_utf8_lossy(body).into_owned());
        self.read(get(path), text).await
    }

    /// Requests a probe through the Pod proxy; returns the result, and the milliseconds it took.
    /// `declared` is the timeout of the probe.
    pub(super) async fn probe(&self, path: &str, declared: Duration) -> (ProbeResult, u64) {
        let start = Instant::now();
        let deadline = self.deadline.max(declared + Duration::from_secs(1));
        let result = match self.send(get(path), deadline, beginning).await {
            Ok((status, body)) => ProbeResult::of_response(status.as_u16(), &String::from_utf8_lossy(&body)),
            Err(error) => ProbeResult::Failed(error),
        };
        (result, u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    async fn read<T>(&self, request: Request<Vec<u8>>, parse: fn(&Bytes) -> Result<T, String>) -> Fetched<T> {
        match self.send(request, self.deadline, whole).await {
            Ok(response) => fetched(response, parse),
            Err(error) => Fetched::Failed(error),
        }
    }

    async fn send(
        &self,
        request: Request<Vec<u8>>,
        deadline: Duration,
        read: impl AsyncFnOnce(Body) -> Result<Bytes, String>,
    ) -> Result<(StatusCode, Bytes), String> {
        let response = async {
            let response = self.client.send(request.map(Body::from)).await;
            let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
            Ok((head.status, read(body).await?))
        };
        match timeout(deadline, response).await {
            Ok(response) => response,
            Err(_) => Err(format!("no response within {} ms", deadline.as_millis())),
        }
    }
}

async fn whole(body: Body) -> Result<Bytes, String> {
    let body = Limited::new(body, LIMIT).collect().await.map_err(|error| error.to_string())?;
    Ok(body.to_bytes())
}

/// Reads the beginning of the response of an application, which may be endless.
async fn beginning(mut body: Body) -> Result<Bytes, String> {
    let mut bytes = Vec::new();
    while bytes.len() < PROBE_LIMIT {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| error.to_string())?;
        bytes.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
    }
    bytes.truncate(PROBE_LIMIT);
    Ok(bytes.into())
}

fn get(path: &str) -> Request<Vec<u8>> {
    Request::get(path).body(Vec::new()).expect("the parts of a path are checked names")
}

fn fetched<T>((status, body): (StatusCode, Bytes), parse: fn(&Bytes) -> Result<T, String>) -> Fetched<T> {
    match status {
        StatusCode::NOT_FOUND => Fetched::NotFound,
        // 403 of the Pod itself, through the proxy, has no object of the API server as its body.
        StatusCode::FORBIDDEN if object(&body).is_ok_and(|object| object["kind"] == "Status") => {
            Fetched::Forbidden
        }
        // The sidecar's readiness is a response too.
        StatusCode::SERVICE_UNAVAILABLE if object(&body).is_ok_and(|object| object["kind"] != "Status") => {
            parse(&body).map_or_else(Fetched::Failed, Fetched::Found)
        }
        status if status.is_success() => parse(&body).map_or_else(Fetched::Failed, Fetched::Found),
        status => {
            let text = object(&body).ok().and_then(|object| object["message"].as_str().map(str::to_owned));
            let text = text.unwrap_or_else(|| String::from_utf8_lossy(&body).trim().to_owned());
            Fetched::Failed(format!("{status}: {}", text.lines().next().unwrap_or_default()))
        }
    }
}

fn object(body: &Bytes) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| format!("the response is not JSON: {error}"))
}

fn items(body: &Bytes) -> Result<Vec<Value>, String> {
    match object(body)?["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Err("the response is not a list".to_owned()),
    }
}
