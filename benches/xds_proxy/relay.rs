//! A relay that copies bytes and knows nothing of them: what any program between a control plane and a
//! client costs at least.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

/// Relays each connection to `socket` to this address, on two threads of its own.
///
/// # Errors
/// If the socket cannot be created.
pub(crate) fn start(socket: &Path, to: SocketAddr) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    thread::spawn(move || {
        for client in listener.incoming() {
            if let Err(error) = client.and_then(|client| relay(client, to)) {
                panic!("the relay to {to}: {error}");
            }
        }
    });
    Ok(())
}

fn relay(client: UnixStream, to: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(to)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let (mut from_server, mut to_client) = (server, client);
    thread::spawn(move || {
        let copied = io::copy(&mut from_client, &mut to_server);
        to_server.shutdown(Shutdown::Write).and(copied)
    });
    thread::spawn(move || {
        let copied = io::copy(&mut from_server, &mut to_client);
        to_client.shutdown(Shutdown::Write).and(copied)
    });
    Ok(())
}
