//! Requests to the CA of istiod.

use std::convert::identity;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderMap;
use serving::grpc::{self, MessageBody, Messages};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::client::GrpcService as _;
use tonic::{Code, Status};

use istio_certificates::ca;
use xds_client::DiscoveryServer;
use xds_client::connection::{self, Connection, ServerTarget};
use xds_client::tls::TlsFiles;
use xds_client::token::TokenFile;

/// How long one request may take, the connection included.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of an answer in bytes.
const ANSWER_LIMIT: usize = 4 << 20;

/// The CA of istiod, which signs for whom the token names.
#[derive(Clone, Debug)]
pub struct CaClient {
    pub server: DiscoveryServer,
    /// `None` for plaintext.
    pub tls: Option<TlsFiles>,
    pub token: TokenFile,
    /// Headers of each request.
    pub headers: HeaderMap,
    /// The value of `ISTIO_META_CERT_SIGNER`, or empty.
    pub signer: String,
    /// The requested lifetime.
    pub lifetime: Duration,
}

impl CaClient {
    /// Sends a signing request on a new connection, and returns the chain: the certificate first, the CA
    /// certificates last. The files are read for each request.
    ///
    /// # Errors
    /// Why there is no certificate.
    pub async fn sign(&self, request: &str, random: fastrand::Rng) -> Result<Vec<String>, String> {
        let message = ca::encode_request(request, self.lifetime, &self.signer);
        let answered = timeout(TIMEOUT, self.call(message, random)).await;
        let answer = answered.map_err(|_| format!("no answer within {} s", TIMEOUT.as_secs()))??;
        ca::decode_response(&answer).map_err(|error| error.to_string())
    }

    async fn call(&self, message: Bytes, random: fastrand::Rng) -> Result<Bytes, String> {
        let tls = self.tls.as_ref().map(|files| files.read()?.client(&self.server.san));
        let target = ServerTarget {
            server: self.server.clone(),
            tls: tls.transpose().map_err(|error| error.to_string())?,
            token: Some(self.token.clone()),
            headers: self.headers.clone(),
        };
        let connection = connection::connect(&[target], random).await?;
        unary(connection, message).await.map_err(|status| match status.code() {
            Code::Unknown if status.message().is_empty() => "the server closed the connection".to_owned(),
            code => format!("{code:?}: {}", status.message()),
        })
    }
}

/// Sends one message, and returns the only one of the answer.
async fn unary(connection: Connection, message: Bytes) -> Result<Bytes, Status> {
    let (sender, queue) = mpsc::channel(1);
    // The queue is empty and its receiver exists.
    let _ = sender.try_send(Ok(grpc::parts(message, Bytes::new())));
    drop(sender);
    let request = connection.request(ca::PATH, Body::new(MessageBody::of_request(queue, identity)));
    let Connection { mut requests, driver: _driver, .. } = connection;
    let response = requests.call(request).await.map_err(|error| Status::unavailable(error.to_string()))?;
    if let Some(status) = connection::refusal(&response) {
        return Err(status);
    }
    Messages::new(response.into_body(), ANSWER_LIMIT).next().await
}
