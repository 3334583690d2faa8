//! A TCP proxy between a replica and the API server, which a test can interrupt as a lost network does:
//! connections stay open, and nothing is forwarded.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use kit::net;
use kubernetes_tests::Cluster;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub(super) struct ApiProxy {
    address: SocketAddr,
    is_interrupted: watch::Sender<bool>,
}

impl ApiProxy {
    pub(super) fn start(runtime: &Runtime, server: SocketAddr) -> Self {
        let (is_interrupted, interrupted) = watch::channel(false);
        let bind = TcpListener::bind((net::loopback(), 0));
        let listener = runtime.block_on(bind).expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(upstream) = TcpStream::connect(server).await else { continue };
                let (client, upstream) = (client.into_split(), upstream.into_split());
                tokio::spawn(forward(client.0, upstream.1, interrupted.clone()));
                tokio::spawn(forward(upstream.0, client.1, interrupted.clone()));
            }
        });
        Self { address, is_interrupted }
    }

    pub(super) fn set_interrupted(&self, is_interrupted: bool) {
        self.is_interrupted.send_replace(is_interrupted);
    }

    /// Writes the kubeconfig of a user with this address, and the API server's name for its certificate.
    pub(super) fn kubeconfig(&self, cluster: &Cluster, user: &str, instance: &str) -> PathBuf {
        let text = fs::read_to_string(cluster.kubeconfig(user)).expect("a kubeconfig");
        let server = cluster.server();
        let (direct, proxied) = (format!("\"https://{server}\""), format!("\"https://{}\"", self.address));
        let with_name = format!("{proxied},\"tls-server-name\":\"kubernetes\"");
        assert!(text.contains(&direct), "{text}");
        let file = cluster.folder.join(format!("{instance}-{user}.kubeconfig"));
        fs::write(&file, text.replace(&direct, &with_name)).expect("a writable folder");
        file
    }
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut interrupted: watch::Receiver<bool>,
) {
    let mut block = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut block).await {
        if interrupted.wait_for(|is_interrupted| !is_interrupted).await.is_err()
            || to.write_all(&block[..length]).await.is_err()
        {
            break;
        }
    }
    // The other end learns that this one has closed the connection.
    let _ = to.shutdown().await;
}
