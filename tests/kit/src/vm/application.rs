//! The application of a machine: HTTP/1.1 and HTTP/2 in plaintext, with a switch between
//! behaviors.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::app::switched::Behavior;

/// The path of its probe; requests for any other path count as work.
pub const READY_PATH: &str = "/readyz";
/// The response header with the name of the machine.
pub const MACHINE: &str = "x-machine";

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    /// The probes since the last change of the behavior.
    probes: Mutex<Vec<Instant>>,
}

/// An application that listens until it is dropped.
pub struct Application {
    pub address: SocketAddr,
    behavior: watch::Sender<Behavior>,
    counts: Arc<Counts>,
    task: AbortHandle,
}

impl Drop for Application {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Application {
    /// Listens on `address` as the machine `name`.
    ///
    /// # Panics
    /// If the port is in use.
    pub async fn start(name: &str, address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("the application's port is free");
        let behavior = watch::Sender::new(Behavior::Serving);
        let counts = Arc::new(Counts::default());
        let serving = serve(listener, name.to_owned(), behavior.subscribe(), Arc::clone(&counts));
        let task = tokio::spawn(serving).abort_handle();
        Self { address, behavior, counts, task }
    }

    pub fn behavior(&self) -> Behavior {
        *self.behavior.borrow()
    }

    pub fn set_behavior(&self, behavior: Behavior) {
        self.counts.probes.lock().expect("the mutex is not poisoned").clear();
        self.behavior.send_replace(behavior);
    }

    /// Returns the number of requests that were not probes.
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// Returns the times at which it responded to probes since the last change of the behavior; a
    /// hanging one responds to none.
    pub fn probes(&self) -> Vec<Instant> {
        self.counts.probes.lock().expect("the mutex is not poisoned").clone()
    }
}

async fn serve(
    listener: TcpListener,
    name: String,
    behavior: watch::Receiver<Behavior>,
    counts: Arc<Counts>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (name, behavior, counts) = (name.clone(), behavior.clone(), Arc::clone(&counts));
        connections.spawn(async move {
            let service = service_fn(move |request| {
                answer(request, name.clone(), behavior.clone(), Arc::clone(&counts))
            });
            // Errors of a connection are caused by the client.
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    name: String,
    behavior: watch::Receiver<Behavior>,
    counts: Arc<Counts>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_probe = request.uri().path() == READY_PATH;
    if !is_probe {
        counts.requests.fetch_add(1, Ordering::SeqCst);
    }
    let now = *behavior.borrow();
    let status = match now {
        Behavior::Serving => 200,
        Behavior::Failing => 503,
        Behavior::Hanging => std::future::pending().await,
    };
    if is_probe {
        counts.probes.lock().expect("the mutex is not poisoned").push(Instant::now());
    }
    let response = Response::builder().status(status).header(MACHINE, &name);
    Ok(response.body(Full::from(format!("{name}\n"))).expect("a valid response"))
}
