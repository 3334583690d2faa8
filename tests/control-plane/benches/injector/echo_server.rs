//! An HTTPS server that sends back the body of each request: what TLS, the kernel and the client take
//! of the time of a review.

use std::io::{Read as _, Result, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::webhook_support::{Ca, NAME};

/// A server that runs until the process exits, and serves one connection.
pub(crate) struct EchoServer {
    pub(crate) address: SocketAddr,
    /// The kernel's ID of its thread.
    pub(crate) thread_id: String,
}

impl EchoServer {
    /// Starts the server with a certificate of the webhook's name.
    pub(crate) fn start(ca: &Ca) -> Self {
        let (certificate, key) = ca.sign("echo", &[NAME]);
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        let config = Arc::new(config.expect("a pair"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let link = std::fs::read_link("/proc/thread-self").expect("/proc is mounted");
            let _ = sender.send(link.file_name().expect("a thread ID").to_string_lossy().into_owned());
            let (socket, _) = listener.accept().expect("a connection");
            // The client sees the error as the end of its connection.
            let _ = serve(socket, config);
        });
        Self { address, thread_id: receiver.recv().expect("the thread starts") }
    }
}

fn serve(socket: TcpStream, config: Arc<ServerConfig>) -> Result<()> {
    socket.set_nodelay(true)?;
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    loop {
        let mut body = Vec::new();
        let mut block = [0; 16 << 10];
        let length = loop {
            let read = stream.read(&mut block)?;
            if read == 0 {
                return Ok(());
            }
            body.extend_from_slice(&block[..read]);
            if let Some(end) = body.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&body[..end]).into_owned();
                body.drain(..end + 4);
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                break length.and_then(|length| length.parse().ok()).unwrap_or(0);
            }
        };
        let received = body.len();
        body.resize(length, 0);
        stream.read_exact(&mut body[received..])?;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), &body].concat())?;
        stream.flush()?;
    }
}
