//! An HTTP proxy between a program and the API server, which answers as an overloaded API server does.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kit::net;
use kube::Client;
use kubernetes_tests::Cluster;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::api_client;

type AnyBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// How the proxy answers. A change ends the watches that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Every request is answered with 429, as by API priority and fairness.
    TooManyRequests,
    /// Every watch is answered with 410, as if its resource version was compacted.
    ExpiredWatches,
    /// Each part of a watch arrives late by this time.
    SlowWatches(Duration),
}

pub(crate) struct FaultyApi {
    address: SocketAddr,
    fault: watch::Sender<Fault>,
    requests: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl FaultyApi {
    /// Starts a proxy whose requests have the permissions of a user.
    pub(crate) fn start(cluster: &Cluster, user: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (fault, current) = watch::channel(Fault::None);
        let requests = Arc::new(AtomicUsize::new(0));
        let client = runtime.block_on(api_client(&cluster.kubeconfig(user)));
        let listener = runtime.block_on(TcpListener::bind((net::loopback(), 0))).expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let count = requests.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, current, count) = (client.clone(), current.clone(), count.clone());
                let service = service_fn(move |request| {
                    count.fetch_add(1, Ordering::Relaxed);
                    answer(request, client.clone(), current.clone())
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, fault, requests, _runtime: runtime }
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }

    /// Returns the number of requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    /// Writes a kubeconfig without credentials, which names this proxy.
    pub(crate) fn kubeconfig(&self, cluster: &Cluster) -> PathBuf {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "faulty",
            "clusters": [{"name": "faulty", "cluster": {"server": format!("http://{}", self.address)}}],
            "contexts": [{"name": "faulty", "context": {"cluster": "faulty", "user": "nobody"}}],
            "users": [{"name": "nobody", "user": {}}],
        });
        let file = cluster.folder.join(format!("faulty-{}.kubeconfig", self.address.port()));
        fs::write(&file, config.to_string()).expect("a writable folder");
        file
    }
}

async fn answer(
    request: Request<Incoming>,
    client: Client,
    mut fault: watch::Receiver<Fault>,
) -> Result<Response<AnyBody>, Infallible> {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let current = *fault.borrow_and_update();
    match current {
        Fault::TooManyRequests => return Ok(status(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests")),
        Fault::ExpiredWatches if is_watch => return Ok(status(StatusCode::GONE, "Expired")),
        _ => {}
    }
    let Ok(response) = forward(request, client).await else {
        return Ok(status(StatusCode::BAD_GATEWAY, "InternalError"));
    };
    let delay = match current {
        Fault::SlowWatches(delay) => delay,
        _ => Duration::ZERO,
    };
    Ok(response.map(|body| if is_watch { until_changed(body, fault, delay) } else { body }))
}

async fn forward(
    request: Request<Incoming>,
    client: Client,
) -> Result<Response<AnyBody>, Box<dyn std::error::Error + Send + Sync>> {
    let (mut head, body) = request.into_parts();
    head.headers.remove(HOST);
    let body = body.collect().await?.to_bytes().to_vec();
    let response = client.send(Request::from_parts(head, body.into())).await?;
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// Passes on the parts of a body, each with a delay, until the fault changes.
fn until_changed(body: AnyBody, fault: watch::Receiver<Fault>, delay: Duration) -> AnyBody {
    let parts = stream::unfold((body, fault), move |(mut body, mut fault)| async move {
        let part = async {
            let part = body.frame().await?;
            sleep(delay).await;
            Some(part)
        };
        let part = tokio::select! {
            part = part => part?,
            _ = fault.changed() => return None,
        };
        Some((part, (body, fault)))
    });
    StreamBody::new(parts).boxed_unsync()
}

/// Returns an error as the API server sends it.
fn status(code: StatusCode, reason: &str) -> Response<AnyBody> {
    let status: Value = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": reason, "reason": reason, "code": code.as_u16(),
    });
    let body = Full::from(status.to_string()).map_err(|never| match never {}).boxed_unsync();
    let response = Response::builder().status(code).header(CONTENT_TYPE, "application/json");
    response.header(RETRY_AFTER, "1").body(body).expect("a valid response")
}
