//! A client without a certificate that begins TLS handshakes at a constant rate and finishes none.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::certificates::DISCOVERY_NAME;
use crate::load::connect;

/// The client; dropping this closes its connections.
pub struct Stranger(AbortOnDropHandle<()>);

impl Stranger {
    /// Connects from `source`; `config` is that of any TLS client.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(source: IpAddr, server: SocketAddr, per_second: u32, config: &Arc<ClientConfig>) -> Self {
        let hello: Arc<[u8]> = client_hello(config).into();
        Self(AbortOnDropHandle::new(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            let mut interval = tokio::time::interval(Duration::from_secs(1) / per_second);
            loop {
                interval.tick().await;
                while connections.try_join_next().is_some() {}
                let hello = Arc::clone(&hello);
                connections.spawn(async move {
                    let Ok(mut stream) = connect(Some(source), server).await else { return };
                    // The connection ends when the server closes it.
                    if stream.write_all(&hello).await.is_ok() {
                        while stream.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {}
                    }
                });
            }
        })))
    }

    /// Returns true while the client connects.
    pub fn is_running(&self) -> bool {
        !self.0.is_finished()
    }
}

fn client_hello(config: &Arc<ClientConfig>) -> Vec<u8> {
    let name = ServerName::try_from(DISCOVERY_NAME).expect("a name");
    let mut hello = Vec::new();
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("a client");
    client.write_tls(&mut hello).expect("a ClientHello");
    hello
}
