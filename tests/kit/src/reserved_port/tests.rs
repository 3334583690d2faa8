use std::io::ErrorKind;
use std::net::TcpListener;

use super::*;
use crate::net::loopback;

#[tokio::test]
async fn a_reserved_port_refuses_connections_until_a_server_listens() {
    let reserved = ReservedPort::new(loopback());
    let connected = tokio::net::TcpStream::connect(reserved.address).await;
    assert_eq!(connected.expect_err("nobody listens").kind(), ErrorKind::ConnectionRefused);
    let _server = TcpListener::bind(reserved.address).expect("a server can listen");
    tokio::net::TcpStream::connect(reserved.address).await.expect("the server accepts");
}
