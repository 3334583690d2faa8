//! What scripted control planes share: a listener, and the two directions of an ADS stream.

use std::net::SocketAddr;

use hyper::body::{Body as HttpBody, Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serving::grpc::{self, Flow, MessageBody, Messages};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;
use tonic::body::Body;
use xds::{Request, Variant};

/// Maximum size of a request in bytes.
const REQUEST: usize = 64 << 20;
/// Capacity of a queue of responses, which no test exceeds.
const RESPONSES: usize = 1024;

pub(super) type HttpRequest = hyper::Request<Incoming>;
pub(super) type HttpResponse = hyper::Response<Body>;
/// Encoded responses, and the status that ends the stream.
pub(super) type Responses = mpsc::Sender<Result<Bytes, Status>>;

/// A listener; dropping it closes all its connections.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    task: AbortOnDropHandle<()>,
}

impl Listener {
    /// Serves each connection to this address.
    ///
    /// # Errors
    /// If the address is in use.
    pub(super) async fn bind<F: Future<Output = ()> + Send + 'static>(
        address: SocketAddr,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            // The connections are aborted together with the listener's task.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // Fails only for a closed socket.
                let _ = stream.set_nodelay(true);
                connections.spawn(serve(stream));
            }
        });
        Ok(Self { address, task: AbortOnDropHandle::new(task) })
    }

    /// Closes all connections and the listener. Afterwards another process can listen on its address.
    pub(super) async fn stop(self) {
        self.task.abort();
        // The result is that the task was aborted.
        let _ = self.task.await;
    }
}

/// Answers the requests of a connection until the client closes it.
pub(super) async fn serve<B, F>(stream: TcpStream, answer: impl Fn(HttpRequest) -> F)
where
    B: HttpBody<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    F: Future<Output = hyper::Response<B>> + Send + 'static,
{
    let service = service_fn(|request| {
        let answer = answer(request);
        async { Ok::<_, std::convert::Infallible>(answer.await) }
    });
    // Fails when the client closes the connection.
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// The requests of a stream.
pub(super) struct Requests {
    pub(super) variant: Variant,
    messages: Messages<Incoming>,
}

impl Requests {
    /// # Errors
    /// If the path is not that of an ADS stream.
    pub(super) fn new(request: HttpRequest) -> Result<Self, Status> {
        let variant = Variant::of_path(request.uri().path());
        let variant = variant.ok_or_else(|| Status::unimplemented(request.uri().path()))?;
        Ok(Self { variant, messages: Messages::new(request.into_body(), REQUEST) })
    }

    /// Returns the next request; `None` once the client has ended the stream.
    ///
    /// # Panics
    /// If the client sends something else.
    pub(super) async fn next(&mut self) -> Option<Request> {
        let message = self.messages.next().await.ok()?;
        Some(Request::parse(&message, self.variant).expect("a request"))
    }
}

/// Returns the response to the request that opens a stream, and the queue of its messages.
pub(super) fn open() -> (Responses, HttpResponse) {
    let (responses, queue) = mpsc::channel(RESPONSES);
    let encode = |message| grpc::parts(message, Bytes::new());
    let body = MessageBody::of_response(queue, Flow::default(), encode);
    let mut response = HttpResponse::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    (responses, response)
}
