//! A discovery server that violates the protocol: it ignores what a client requests, and every stream
//! receives the same bytes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http_body_util::StreamBody;
use hyper::Response;
use hyper::body::{Bytes, Frame};
use serving::grpc;
use xds::{ResourceRef, ResponseHead, Variant, type_url};

use super::ads_server::{Listener, serve};
use super::xds_resources::assignment_of_size;

/// A content that is no response.
const GARBAGE: Bytes = Bytes::from_static(&[0xff; 64]);

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

#[derive(Clone, Debug)]
pub enum Fault {
    /// A message that is not a response.
    Garbage,
    /// The stream ends inside a message.
    Cut,
    /// The header of a message of 1 GiB.
    Huge,
    /// This response, as often as the client reads it, always with the same nonce.
    Repeated(Bytes),
}

impl Fault {
    /// Repeats a response of this type whose resource, of this size, is no protobuf message.
    pub fn malformed_resources(type_url: &str, size: usize) -> Self {
        Self::repeated(type_url, &xds::any(type_url, &vec![0xff; size]))
    }

    /// Repeats the endpoints of a cluster, which are valid and have about this size.
    pub fn endpoints(cluster: &str, size: usize) -> Self {
        Self::repeated(type_url::ENDPOINT, &assignment_of_size(cluster, size))
    }

    /// Repeats an incremental response that removes so many resources.
    pub fn removed_names(type_url: &str, count: usize) -> Self {
        let names: Vec<String> = (0..count).map(|number| format!("n{number}")).collect();
        let head = ResponseHead { type_url, version: "", nonce: "same" };
        Self::Repeated(message(head.encode(Variant::Delta, [], names.iter().map(String::as_str))))
    }

    fn repeated(type_url: &str, any: &[u8]) -> Self {
        let head = ResponseHead { type_url, version: "1", nonce: "same" };
        let resource = ResourceRef { name: "", version: "", any };
        Self::Repeated(message(head.encode(Variant::Sotw, [resource], [])))
    }

    fn frames(&self) -> Frames {
        let frame = |bytes: &Bytes| Ok(Frame::data(bytes.clone()));
        match self {
            Self::Garbage => stream::iter([frame(&message(GARBAGE))]).chain(stream::pending()).boxed(),
            Self::Cut => stream::iter([frame(&message(GARBAGE).slice(..32))]).boxed(),
            Self::Huge => {
                let header = Bytes::from_static(&[0, 0x40, 0, 0, 0]);
                stream::iter([frame(&header)]).chain(stream::pending()).boxed()
            }
            Self::Repeated(message) => {
                stream::repeat(message.clone()).map(move |message| frame(&message)).boxed()
            }
        }
    }
}

/// Returns a message with its header.
fn message(content: Bytes) -> Bytes {
    grpc::parts(content, Bytes::new()).concat().into()
}

/// A server; dropping it closes all its connections.
pub struct FaultyAds {
    pub address: SocketAddr,
    streams: Arc<AtomicUsize>,
    listener: Listener,
}

impl FaultyAds {
    /// Starts a server in plaintext.
    ///
    /// # Panics
    /// If the address is in use.
    pub async fn listen(address: SocketAddr, fault: Fault) -> Self {
        let streams = Arc::new(AtomicUsize::new(0));
        let counted = streams.clone();
        let listener = Listener::bind(address, move |stream| {
            let (fault, streams) = (fault.clone(), counted.clone());
            serve(stream, move |_| {
                streams.fetch_add(1, Ordering::Relaxed);
                let response = Response::builder().header("content-type", "application/grpc");
                let response = response.body(StreamBody::new(fault.frames())).expect("a valid response");
                std::future::ready(response)
            })
        });
        let listener = listener.await.expect("the address is free");
        Self { address: listener.address, streams, listener }
    }

    /// Closes all connections and the listener. Afterwards another process can listen on its address.
    pub async fn stop(self) {
        self.listener.stop().await;
    }

    /// Returns the number of streams so far.
    pub fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }
}
