//! A control plane that serves the resources of a test in both variants. It trusts versions: what a client
//! names with the current version on its first request is not sent again. It sends a changed type at once,
//! without waiting for the acknowledgement of the response before.

mod stream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use hyper::body::Bytes;
use tokio::sync::watch;
use tonic::Status;
use xds::Request;
use xds::type_url::HEALTH_INFORMATION;

use super::ads_server::{self, HttpRequest, HttpResponse, Listener, Requests, Responses};
use stream::OneStream;

/// A request of a client.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The number of the stream, from 0.
    pub stream: usize,
    pub request: Request,
}

/// The resources of one type.
#[derive(Clone, Debug, Default)]
struct Collection {
    version: String,
    /// Encoded resources by name.
    resources: BTreeMap<String, Bytes>,
}

type Collections = BTreeMap<String, Collection>;

#[derive(Debug)]
struct Shared {
    collections: watch::Sender<Collections>,
    seen: Mutex<Vec<Seen>>,
    streams: Mutex<usize>,
    refuses_reports: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the mutex is not poisoned")
}

/// A server; dropping it closes all its connections.
pub struct VersionedAds {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _listener: Listener,
}

impl VersionedAds {
    /// Starts a server in plaintext. One that refuses reports ends every stream that carries one.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr, refuses_reports: bool) -> Self {
        let shared = Arc::new(Shared {
            collections: watch::Sender::default(),
            seen: Mutex::default(),
            streams: Mutex::default(),
            refuses_reports,
        });
        let state = shared.clone();
        let listener = Listener::bind(address, move |stream| {
            let state = state.clone();
            ads_server::serve(stream, move |request| std::future::ready(open(request, state.clone())))
        });
        let listener = listener.await.expect("the address is free");
        Self { address: listener.address, shared, _listener: listener }
    }

    /// Replaces the resources of a type and sends them to its subscribers.
    pub fn set(&self, type_url: &str, version: &str, resources: &[(&str, Bytes)]) {
        let resources = resources.iter().map(|(name, any)| ((*name).to_owned(), any.clone())).collect();
        let collection = Collection { version: version.to_owned(), resources };
        self.shared.collections.send_modify(|collections| {
            collections.insert(type_url.to_owned(), collection);
        });
    }

    /// Returns all requests of a type so far.
    pub fn seen(&self, type_url: &str) -> Vec<Seen> {
        let seen = lock(&self.shared.seen);
        seen.iter().filter(|seen| seen.request.type_url == type_url).cloned().collect()
    }

    /// Returns the number of streams so far.
    pub fn streams(&self) -> usize {
        *lock(&self.shared.streams)
    }
}

fn open(request: HttpRequest, shared: Arc<Shared>) -> HttpResponse {
    let requests = match Requests::new(request) {
        Ok(requests) => requests,
        Err(status) => return status.into_http(),
    };
    let (responses, response) = ads_server::open();
    tokio::spawn(run(shared, requests, responses));
    response
}

/// Serves one stream until it ends.
async fn run(shared: Arc<Shared>, mut requests: Requests, responses: Responses) {
    let number = {
        let mut streams = lock(&shared.streams);
        *streams += 1;
        *streams - 1
    };
    let mut stream = OneStream::new(number, requests.variant);
    let mut changes = shared.collections.subscribe();
    loop {
        let produced = tokio::select! {
            () = responses.closed() => return,
            _ = changes.changed() => stream.changed(&changes.borrow_and_update()),
            request = requests.next() => {
                let Some(request) = request else { return };
                lock(&shared.seen).push(Seen { stream: number, request: request.clone() });
                if shared.refuses_reports && request.type_url == HEALTH_INFORMATION {
                    let _ = responses.send(Err(Status::invalid_argument("unknown type"))).await;
                    return;
                }
                stream.request(&request, &changes.borrow()).into_iter().collect()
            }
        };
        for response in produced {
            // Fails if the client has disconnected.
            let _ = responses.send(Ok(response)).await;
        }
    }
}
