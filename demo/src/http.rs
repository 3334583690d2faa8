//! HTTP/1.1: the servers of the demo's application, and a client that sends one request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Longest time that a probe waits for its response; longer than any timeout of the demo's probers.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Largest body that is read, in bytes.
const BODY_LIMIT: usize = 64 << 10;

/// Status and body of a response; status 0 if there was none.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends the request of kubelet's prober for `path` on a new connection.
pub(crate) async fn probe(address: SocketAddr, path: &str) -> Answer {
    let exchange = async {
        let stream = TcpStream::connect(address).await.ok()?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = Request::get(path)
            .header(HOST, address.to_string())
            .header(USER_AGENT, "kube-probe/1.36")
            .header(ACCEPT, "*/*")
            .header(CONNECTION, "close")
            .body(Empty::<Bytes>::new())
            .ok()?;
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), BODY_LIMIT).collect().await.ok();
        let body =
            body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
        Some(Answer { status, body })
    };
    tokio::time::timeout(TIMEOUT, exchange).await.ok().flatten().unwrap_or_default()
}

/// Answers every request on `listener`, over TLS if there is an acceptor. Each connection serves one
/// request.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    respond: impl Fn(&str) -> (StatusCode, &'static str) + Clone + Send + Sync + 'static,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, respond) = (acceptor.clone(), respond.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (status, body) = respond(request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
                *response.status_mut() = status;
                async move { Ok::<_, Infallible>(response) }
            });
            let mut builder = http1::Builder::new();
            builder.keep_alive(false);
            // Errors of a connection are caused by the client, which shows them.
            match acceptor {
                None => {
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    }
                }
            }
        });
    }
}
