//! The ADS streams: both variants of the protocol with one script.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tonic::Status;
use xds::json::{decode_struct, encode_struct};
use xds::type_url::{HEALTH_INFORMATION, PROBE};
use xds::{Node, Request, ResourceRef, ResponseHead, Variant, any};

use super::{Script, Seen, Shared, lock};
use crate::vm::ads_server::{self, HttpRequest, HttpResponse, Requests, Responses};

/// Opens a stream, and serves it.
pub(super) async fn open(request: HttpRequest, shared: Arc<Shared>) -> HttpResponse {
    let requests = match Requests::new(request) {
        Ok(requests) => requests,
        Err(status) => return status.into_http(),
    };
    let (responses, response) = ads_server::open();
    let number = {
        let mut streams = lock(&shared.streams);
        *streams += 1;
        *streams - 1
    };
    let is_plain = lock(&shared.script).hello.is_none();
    let speaking = speak(shared, number, requests, responses);
    if is_plain {
        // Without a response there are no headers either.
        return speaking.await.into_http();
    }
    tokio::spawn(speaking);
    response
}

/// Serves one stream until it ends.
async fn speak(shared: Arc<Shared>, number: usize, mut requests: Requests, responses: Responses) -> Status {
    let script = || lock(&shared.script).clone();
    let opened = Instant::now();
    let variant = requests.variant;
    let mut stream =
        OneStream { shared: &shared, number, variant, initialized: false, nonces: 0, hello: None };
    loop {
        let changed = shared.changed.notified();
        let Script { ends, .. } = script();
        if let Some(message) = stream.hello_if_new(&script()) {
            // Fails if the client has disconnected.
            let _ = responses.send(Ok(message)).await;
        }
        let end = async {
            match ends {
                Some((after, code)) => {
                    sleep(after.saturating_sub(opened.elapsed())).await;
                    Status::new(code, "ended by the script")
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = end => {
                let _ = responses.send(Err(status.clone())).await;
                return status;
            }
            () = changed => {}
            request = requests.next() => {
                let Some(request) = request else { return Status::ok("") };
                match stream.take(request, &script()) {
                    Ok(message) => {
                        if let Some(message) = message {
                            let _ = responses.send(Ok(message)).await;
                        }
                    }
                    Err(status) => {
                        let _ = responses.send(Err(status.clone())).await;
                        return status;
                    }
                }
            }
        }
    }
}

struct OneStream<'a> {
    shared: &'a Shared,
    number: usize,
    variant: Variant,
    initialized: bool,
    nonces: usize,
    hello: Option<Value>,
}

impl OneStream<'_> {
    fn hello_if_new(&mut self, script: &Script) -> Option<Bytes> {
        if !self.initialized || script.hello == self.hello {
            return None;
        }
        self.hello.clone_from(&script.hello);
        let hello = self.hello.clone()?;
        let content = any("type.googleapis.com/google.protobuf.Struct", &encode_struct(&hello));
        Some(self.response(PROBE, &format!("v{hello}"), Some(&content)))
    }

    fn response(&mut self, type_url: &str, version: &str, content: Option<&Bytes>) -> Bytes {
        self.nonces += 1;
        let head = ResponseHead { type_url, version, nonce: &format!("{}-{}", self.number, self.nonces) };
        head.encode(self.variant, content.map(|any| ResourceRef { name: "probe", version, any }), [])
    }

    fn take(&mut self, request: Request, script: &Script) -> Result<Option<Bytes>, Status> {
        let parse = |node| Node::parse(node, decode_struct).expect("a node");
        let node = request.node.as_ref().map(parse);
        let metadata = node.as_ref().map_or(Value::Null, |node| node.metadata.clone());
        let (stream, variant) = (self.number, self.variant);
        let seen = Seen { stream, at: Instant::now(), variant, request, node, metadata };
        lock(&self.shared.seen).push(seen.clone());
        if !self.initialized {
            if seen.is_report() {
                return Ok(None);
            }
            if seen.node.as_ref().is_none_or(|node| node.id.is_empty()) {
                return Err(Status::invalid_argument("missing node information"));
            }
            self.initialized = true;
            return Ok(None);
        }
        if !seen.is_report() {
            return Ok(None);
        }
        {
            let mut script = lock(&self.shared.script);
            if script.forgets > 0 {
                script.forgets -= 1;
                return Ok(None);
            }
        }
        let error = seen.request.error_text().expect("a status");
        *lock(&self.shared.health) = Some(error.map_or(Ok(()), Err));
        if !seen.is_ours() || !script.acknowledges {
            return Ok(None);
        }
        let report = &seen.metadata["APP_HEALTH_REPORT"];
        let version = format!("{}/{}", report["epoch"].as_str().unwrap_or_default(), report["generation"]);
        Ok(Some(self.response(HEALTH_INFORMATION, &version, None)))
    }
}
