use super::*;

#[test]
fn local_peers() {
    for (peer, local) in [
        ("127.0.0.1:1", true),
        ("[::1]:1", true),
        ("[::ffff:127.0.0.1]:1", true),
        ("127.0.0.6:1", false),
        ("[::6]:1", false),
        ("[::ffff:127.0.0.6]:1", false),
        ("10.0.0.5:1", false),
    ] {
        assert_eq!(Peer::Tcp(peer.parse().unwrap()).is_local(), local, "{peer}");
    }
    assert!(Peer::Unix.is_local());
}

#[tokio::test]
async fn a_unix_socket_is_private_and_replaces_a_stale_one() {
    let folder = std::env::temp_dir().join(format!("serving-listener-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("s");
    for _ in 0..2 {
        let bound = bind_unix(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(bind_unix(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(bound);
    }
    std::fs::write(folder.join("f"), "").unwrap();
    assert!(bind_unix(&folder.join("f")).is_err());
    assert!(folder.join("f").exists(), "a regular file is not removed");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn only_peers_with_an_address_have_a_source() {
    let address: SocketAddr = "192.0.2.1:1".parse().unwrap();
    assert_eq!(Peer::Tcp(address).source(), Some(address.ip().into()));
    assert_eq!(Peer::Unix.source(), None);
}

#[tokio::test]
async fn accepted_connections_have_a_small_send_buffer_and_send_at_once() {
    let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = Listener::from(listener).accept().await.unwrap();
    stream.set_nodelay();
    let Stream::Tcp(stream) = stream else { panic!("a TCP connection") };
    assert!(stream.nodelay().unwrap());
    // The kernel doubles the size, and has a limit of its own.
    let size = SockRef::from(&stream).send_buffer_size().unwrap();
    assert!((128 << 10..=512 << 10).contains(&size), "{size}");
}
