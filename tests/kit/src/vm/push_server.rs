//! A control plane without decisions: each type has the resources that a benchmark sets, and a change
//! is sent to the newest stream. It serves state of the world in plaintext.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use hyper::body::Bytes;
use tokio::time::Instant;
use tonic::Status;
use xds::{Request, ResourceRef, ResponseHead, Variant};

use super::ads_server::{self, HttpRequest, HttpResponse, Listener, Requests, Responses};

#[derive(Debug, Default)]
struct State {
    /// The encoded resources of each type.
    resources: HashMap<String, Vec<Bytes>>,
    /// The number of changes, which is also the version and the nonce of a response.
    changes: u64,
    /// The newest stream that requested each type.
    streams: HashMap<String, Responses>,
    /// When the newest connection was accepted.
    accepted: Option<Instant>,
    /// When each type was first requested on the newest connection.
    first_requests: HashMap<String, Instant>,
    /// The version of each type that a client accepted last.
    acknowledged: HashMap<String, String>,
}

impl State {
    fn response(&self, type_url: &str) -> Option<Bytes> {
        let version = &*self.changes.to_string();
        let resources = self.resources.get(type_url)?.iter();
        let resources = resources.map(|any| ResourceRef { name: "", version: "", any });
        let head = ResponseHead { type_url, version, nonce: version };
        Some(head.encode(Variant::Sotw, resources, []))
    }

    /// Answers a new subscription; an acknowledgement needs no answer.
    fn on_request(&mut self, request: Request, stream: &Responses) {
        let type_url = request.type_url;
        self.first_requests.entry(type_url.clone()).or_insert_with(Instant::now);
        self.streams.insert(type_url.clone(), stream.clone());
        self.acknowledged.insert(type_url.clone(), request.version);
        if request.nonce.is_empty()
            && let Some(response) = self.response(&type_url)
        {
            // Fails if the client has disconnected.
            let _ = stream.try_send(Ok(response));
        }
    }
}

type Shared = Arc<Mutex<State>>;

fn lock(state: &Shared) -> MutexGuard<'_, State> {
    state.lock().expect("the mutex is not poisoned")
}

/// A server; dropping it closes all its connections.
pub struct PushServer {
    pub address: SocketAddr,
    state: Shared,
    _listener: Listener,
}

impl PushServer {
    /// Starts a server at this address.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr) -> Self {
        Self::try_listen(address).await.expect("the address is free")
    }

    /// Starts a server at this address.
    ///
    /// # Errors
    /// If the address is in use.
    pub async fn try_listen(address: SocketAddr) -> std::io::Result<Self> {
        let state = Shared::default();
        let shared = state.clone();
        let serve = move |stream| {
            {
                let mut state = lock(&shared);
                state.accepted = Some(Instant::now());
                state.first_requests.clear();
            }
            let shared = shared.clone();
            ads_server::serve(stream, move |request| std::future::ready(open(request, shared.clone())))
        };
        let listener = Listener::bind(address, serve).await?;
        Ok(Self { address: listener.address, state, _listener: listener })
    }

    /// Sets the resources of a type, and sends them to the newest stream that requested it. Returns the
    /// time before that.
    pub fn push(&self, type_url: &str, resources: Vec<Bytes>) -> Instant {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.resources.insert(type_url.to_owned(), resources);
        let (response, stream) = (state.response(type_url), state.streams.get(type_url).cloned());
        let begin = Instant::now();
        if let (Some(response), Some(stream)) = (response, stream) {
            // Fails if the client has disconnected.
            let _ = stream.try_send(Ok(response));
        }
        begin
    }

    /// Returns whether a client accepted the last version of a type, or replayed it.
    pub fn is_acknowledged(&self, type_url: &str) -> bool {
        let state = lock(&self.state);
        state.acknowledged.get(type_url).is_some_and(|version| *version == state.changes.to_string())
    }

    /// Returns when the newest connection was accepted.
    pub fn accepted(&self) -> Option<Instant> {
        lock(&self.state).accepted
    }

    /// Returns when this type was first requested on the newest connection.
    pub fn first_request(&self, type_url: &str) -> Option<Instant> {
        lock(&self.state).first_requests.get(type_url).copied()
    }
}

fn open(request: HttpRequest, state: Shared) -> HttpResponse {
    let mut requests = match Requests::new(request) {
        Ok(requests) if requests.variant == Variant::Sotw => requests,
        _ => return Status::unimplemented("state of the world only").into_http(),
    };
    let (responses, response) = ads_server::open();
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            lock(&state).on_request(request, &responses);
        }
    });
    response
}
