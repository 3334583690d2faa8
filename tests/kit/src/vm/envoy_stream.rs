//! A stream of state of the world as an Envoy opens it on the agent's socket or at a control plane, with a
//! client that reads only when a test says so.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use xds::{Node, Request, Response, Variant};

use super::ads_client::{AdsClient, acknowledgement, request};
use crate::wait;

/// Flow-control window in bytes.
const WINDOW: u32 = 64 << 10;
/// A code of `google.rpc.Code`.
const INTERNAL: u64 = 13;

/// An open stream; dropping it closes the connection.
pub struct EnvoyStream(AdsClient);

impl EnvoyStream {
    /// Opens a stream on the agent's socket and requests these resources.
    ///
    /// # Panics
    /// If the socket accepts no stream.
    pub async fn open(socket: &Path, type_url: &str, names: &[&str]) -> Self {
        // The file exists before the socket accepts connections.
        let what = || format!("the agent listens on {}", socket.display());
        let stream = wait::until_some(what, async || UnixStream::connect(socket).await.ok()).await;
        Self::over(stream, type_url, names).await
    }

    /// Opens a stream on a port of a control plane and requests these resources.
    ///
    /// # Panics
    /// If the port accepts no stream.
    pub async fn open_tcp(address: SocketAddr, type_url: &str, names: &[&str]) -> Self {
        let stream = TcpStream::connect(address).await.expect("the control plane listens");
        stream.set_nodelay(true).expect("an open socket");
        Self::over(stream, type_url, names).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        type_url: &str,
        names: &[&str],
    ) -> Self {
        let node = Node { id: "scripted".to_owned(), ..Node::default() };
        let first = Request { node: Some(node.encode_identity()), ..request(type_url, names) };
        let opening = AdsClient::open(stream, Variant::Sotw, WINDOW, &first);
        let opened = timeout(wait::timeout(), opening).await.expect("a response in time");
        Self(opened.expect("the server accepts the stream"))
    }

    /// Requests resources of another type.
    pub async fn subscribe(&self, type_url: &str, names: &[&str]) {
        self.send(request(type_url, names)).await;
    }

    /// Accepts a response, and requests the same resources.
    pub async fn acknowledge(&self, response: &Response, names: &[&str]) {
        self.send(acknowledgement(response, names)).await;
    }

    /// Rejects a response with this text, and requests the same resources.
    pub async fn reject(&self, response: &Response, names: &[&str], text: &str) {
        let error = Some(Request::status(INTERNAL, text));
        self.send(Request { version: String::new(), error, ..acknowledgement(response, names) }).await;
    }

    async fn send(&self, request: Request) {
        // Fails if the server has ended the stream.
        let _ = self.0.send(&request).await;
    }

    /// Reads the next response.
    ///
    /// # Panics
    /// If the stream ends before, or no response arrives in time.
    pub async fn response(&mut self) -> Response {
        let response = timeout(wait::timeout(), self.0.next()).await.expect("a response in time");
        response.expect("the stream is open")
    }
}
