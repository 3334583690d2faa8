//! Asks an agent for secrets as Envoy does, one stream for each name.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hyper::http::uri::Scheme;
use istio_certificates::pem;
use serving::grpc::{self, MessageBody, Messages};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::GrpcService as _;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};
use xds::type_url::SECRET;
use xds::{Node, Request, Response, Variant, fields, parse_any};
use xds_client::DiscoveryServer;
use xds_client::connection::{Connection, handshake};

const PATH: &str = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
/// How long to wait for a secret that exists; longer than both agents take to open a connection to istiod.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for a secret that does not exist.
const BRIEFLY: Duration = Duration::from_secs(2);

/// What a secret contains, as far as two agents must agree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Secret {
    /// PEM texts of CA certificates.
    pub roots: BTreeSet<String>,
    /// Certificate revocation lists that belong to them, as text; of Istio's agent, the name of their file.
    pub revocation_lists: String,
    /// The identities of the first certificate, whether they are critical, and the length of the chain.
    pub identities: Vec<String>,
    pub is_critical: bool,
    pub chain_length: usize,
    /// The algorithm of the first certificate's key.
    pub algorithm: String,
    /// The number of the first certificate, which differs between agents.
    pub serial: String,
}

/// Returns a secret that exists.
pub async fn fetch(socket: &Path, name: &str) -> Secret {
    let found = try_fetch(socket, name, PATIENCE).await;
    found.unwrap_or_else(|| panic!("{}: no secret {name}", socket.display()))
}

/// Returns whether the agent has a secret now.
pub async fn exists(socket: &Path, name: &str) -> bool {
    try_fetch(socket, name, BRIEFLY).await.is_some()
}

async fn try_fetch(socket: &Path, name: &str, patience: Duration) -> Option<Secret> {
    let message = timeout(patience, first_response(socket, name)).await.ok()??;
    let response = Response::parse(&message, Variant::Sotw).expect("a response");
    let [resource] = response.resources.as_slice() else { panic!("{} resources", response.resources.len()) };
    let (type_url, secret) = parse_any(&resource.any).expect("a resource");
    assert_eq!(type_url, SECRET);
    Some(parse(&secret))
}

async fn first_response(socket: &Path, name: &str) -> Option<Bytes> {
    let stream = UnixStream::connect(socket).await.ok()?;
    let server = DiscoveryServer::parse("localhost:1", None).expect("an address");
    let peer = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1);
    let connection = handshake(stream, peer, &server, Scheme::HTTP).await.ok()?;
    let (sender, queue) = mpsc::channel(1);
    let node = Node { id: "client".to_owned(), ..Node::default() };
    let request = Request {
        type_url: SECRET.to_owned(),
        node: Some(node.encode()),
        subscription: Request::subscription_to([name]),
        ..Request::default()
    };
    sender.try_send(Ok(grpc::parts(request.encode(Variant::Sotw), Bytes::new()))).expect("an empty queue");
    let request = connection.request(PATH, Body::new(MessageBody::of_request(queue, std::convert::identity)));
    let Connection { mut requests, driver: _driver, .. } = connection;
    let response = requests.call(request).await.ok()?;
    Messages::new(response.into_body(), 1 << 20).next().await.ok()
}

fn parse(secret: &Bytes) -> Secret {
    let mut found = Secret::default();
    let contents = |message: &Bytes| {
        let sources = fields(message).map(|field| field.expect("a field"));
        sources.map(|field| (field.number, text(&field.bytes().expect("a source")))).collect::<Vec<_>>()
    };
    for field in fields(secret).map(|field| field.expect("a field")) {
        match field.number {
            2 => {
                let contents = contents(&field.bytes().expect("a message"));
                let [(1, chain), (2, key)] = contents.as_slice() else { panic!("{} texts", contents.len()) };
                pem::check_pair(chain, key).expect("a certificate with its key");
                describe(chain, &mut found);
            }
            4 => {
                for (number, text) in contents(&field.bytes().expect("a message")) {
                    match number {
                        1 => found.roots.extend(pem::certificates(&text).map(str::to_owned)),
                        7 => found.revocation_lists = text,
                        _ => panic!("field {number} of a validation context"),
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Returns the text or the file name that a `DataSource` consists of.
fn text(source: &Bytes) -> String {
    fields(source).map(|field| field.expect("a field").text().expect("a text")).collect()
}

fn describe(chain: &str, found: &mut Secret) {
    found.chain_length = pem::certificates(chain).count();
    let (_, first) = x509_parser::pem::parse_x509_pem(chain.as_bytes()).expect("a certificate");
    let (_, first) = X509Certificate::from_der(&first.contents).expect("a certificate");
    found.serial = first.raw_serial_as_string();
    found.algorithm = first.public_key().algorithm.algorithm.to_id_string();
    if let Some(names) = first.subject_alternative_name().expect("names") {
        found.is_critical = names.critical;
        let name = |name: &GeneralName| match name {
            GeneralName::URI(uri) => (*uri).to_owned(),
            other => format!("{other:?}"),
        };
        found.identities = names.value.general_names.iter().map(name).collect();
    }
}
