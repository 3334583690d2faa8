//! What a client with a certificate of the mesh does with a connection to discovery.

use std::net::IpAddr;
use std::time::Duration;

use hyper::body::Bytes;
use kit::vm::ads_client::{AdsClient, request};
use kit::vm::fleet::{ACCOUNTS, NAMESPACE, cluster};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tonic::Status;
use xds::type_url::{ENDPOINT, HEALTH_INFORMATION, LISTENER};
use xds::{Node, Request, Variant};

/// The group that the certificate may join, and its account.
const GROUP: &str = "service-000";
const ACCOUNT: &str = ACCOUNTS[0];
const WINDOW: u32 = 1 << 20;
/// The largest message that discovery accepts, in bytes.
const LARGEST_MESSAGE: usize = 4 << 20;
/// The most names that discovery accepts in one message.
const NAMES: usize = 4096;
/// A code of `google.rpc.Code`.
const INTERNAL: u64 = 13;
/// The time between two reports of a machine, faster than discovery reads them.
const FLAP: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Sends a message of 4 MiB without its last byte.
    HalfMessage,
    /// Registers a machine with its address, and stays.
    Machine,
    /// Registers a machine, and reports it unhealthy and healthy in turn.
    FlappingMachine,
    /// Subscribes to all endpoints, and reads nothing.
    ReadsNothing,
    /// Subscribes to the endpoints of services that do not exist.
    UnknownNames,
}

impl Holder {
    /// Acts until the server ends the stream.
    pub(super) async fn act(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        source: IpAddr,
    ) -> Result<(), Status> {
        let (window, first) = match self {
            Self::HalfMessage => (WINDOW, subscription(source)),
            Self::ReadsNothing => (0, subscription(source)),
            Self::UnknownNames => (WINDOW, unknown_names(source)),
            Self::Machine | Self::FlappingMachine => (WINDOW, machine(source)),
        };
        let mut client = AdsClient::open(stream, Variant::Sotw, window, &first).await?;
        match self {
            Self::HalfMessage => client.send_incomplete(Bytes::from(vec![b'x'; LARGEST_MESSAGE])).await?,
            Self::Machine => client.send(&report("")).await?,
            Self::FlappingMachine => loop {
                for text in ["HTTP status 503", ""] {
                    client.send(&report(text)).await?;
                    sleep(FLAP).await;
                }
            },
            Self::ReadsNothing => return std::future::pending().await,
            Self::UnknownNames => {}
        }
        loop {
            client.next().await?;
        }
    }
}

fn subscription(source: IpAddr) -> Request {
    let names = [cluster(0)];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Request { node: Some(node(source, &[])), ..request(ENDPOINT, &names) }
}

fn unknown_names(source: IpAddr) -> Request {
    let stream = fastrand::u64(..);
    let names: Vec<String> =
        (0..NAMES).map(|number| format!("outbound|80||unknown-{stream}-{number}.example.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Request { node: Some(node(source, &[])), ..request(ENDPOINT, &names) }
}

fn machine(source: IpAddr) -> Request {
    let address = source.to_string();
    let metadata = [("SERVICE_ACCOUNT", ACCOUNT), ("INSTANCE_IPS", &address), ("AUTO_REGISTER_GROUP", GROUP)];
    Request { node: Some(node(source, &metadata)), ..request(LISTENER, &[]) }
}

fn node(source: IpAddr, more: &[(&str, &str)]) -> Bytes {
    let mut metadata = json!({ "NAMESPACE": NAMESPACE });
    for (name, value) in more {
        metadata[name] = (*value).into();
    }
    let id = format!("sidecar~{source}~hostile.{NAMESPACE}~{NAMESPACE}.svc.cluster.local");
    Node { id, metadata, ..Node::default() }.encode()
}

/// Returns a report as Istio's agent sends it; an empty text means healthy.
fn report(text: &str) -> Request {
    let error = (!text.is_empty()).then(|| Request::status(INTERNAL, text));
    Request { error, ..request(HEALTH_INFORMATION, &[]) }
}
