use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const TYPE_A: u8 = 1;
const TYPE_TXT: u8 = 16;

fn query(id: u8, name: &str, kind: u8) -> Vec<u8> {
    let mut message = vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        message.push(u8::try_from(label.len()).unwrap());
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(&[0, 0, kind, 0, 1]);
    message
}

/// A table with the address 10.0.0.7 for `web.example`.
const TABLE: &[u8] = b"\x0a\x1d\x0a\x0bweb.example\x12\x0e\x0a\x0810.0.0.7\x12\x02Ex";

/// A server of the system. It answers every query with the query itself and `size` more bytes; 0 is silence.
struct Upstream {
    address: SocketAddr,
    queries: Arc<AtomicUsize>,
}

async fn upstream(size: usize) -> Upstream {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = UdpSocket::bind(address).await.unwrap();
    let queries = Arc::new(AtomicUsize::new(0));
    let answer = move |query: &[u8]| {
        let mut response = query.to_vec();
        response[2] |= 0x80;
        response.extend(std::iter::repeat_n(7, size));
        response
    };
    let counted = queries.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; LARGEST_LIMIT];
        loop {
            let (length, client) = udp.recv_from(&mut buffer).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            if size > 0 {
                // A response to another query comes first.
                let mut forged = answer(&buffer[..length]);
                forged[1] ^= 1;
                udp.send_to(&forged, client).await.unwrap();
                udp.send_to(&answer(&buffer[..length]), client).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = tcp.accept().await.unwrap();
            while let Ok(query) = read_message(&mut stream, LARGEST_LIMIT).await {
                if size > 0 {
                    write_message(&mut stream, &answer(&query)).await.unwrap();
                }
            }
        }
    });
    Upstream { address, queries }
}

/// Starts a proxy, with the table unless the test has none.
async fn proxy(servers: &[&Upstream], has_table: bool, is_parallel: bool) -> SocketAddr {
    let config = DnsConfig {
        addresses: vec!["127.0.0.1:0".parse().unwrap()],
        servers: servers.iter().map(|server| server.address).collect(),
        // Long enough for a busy machine.
        timeout: Duration::from_secs(2),
        is_parallel,
        place: Place::new("shop", "svc.cluster.local", None),
    };
    // The same port for both, as with a port that is given.
    let listeners = loop {
        let tcp = http_server::bind(config.addresses[0]).unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
            break DnsListeners { udp: vec![udp], tcp: vec![tcp] };
        }
    };
    let address = listeners.udp[0].local_addr().unwrap();
    let (own, table, _) = start(config, listeners, Arc::default(), fastrand::Rng::with_seed(7));
    assert!(table.borrow().is_none());
    if has_table {
        (own.accept)(&Bytes::from_static(TABLE)).unwrap();
    }
    assert!((own.accept)(&Bytes::from_static(b"\x08")).is_err());
    address
}

async fn udp(proxy: SocketAddr, query: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.send_to(query, proxy).await.unwrap();
    let mut buffer = vec![0; LARGEST_LIMIT];
    let length =
        timeout(Duration::from_secs(60), socket.recv(&mut buffer)).await.expect("a response").unwrap();
    buffer.truncate(length);
    buffer
}

/// Several queries on one connection.
async fn tcp(proxy: SocketAddr, queries: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let mut responses = Vec::new();
    for query in queries {
        write_message(&mut stream, query).await.unwrap();
        responses.push(read_message(&mut stream, LARGEST_LIMIT).await.unwrap());
    }
    responses
}

#[tokio::test]
async fn names_of_the_mesh_are_answered() {
    let server = upstream(100).await;
    let proxy = proxy(&[&server], true, false).await;
    let web = query(1, "web.example", TYPE_A);
    let response = udp(proxy, &web).await;
    assert_eq!((response[3] & 0xf, response[7]), (0, 1));
    assert_eq!(response[response.len() - 4..], [10, 0, 0, 7]);
    assert_eq!(tcp(proxy, &[web.clone(), web]).await, [response.clone(), response]);
    assert_eq!(server.queries.load(Ordering::Relaxed), 0);
}

/// Istio's agent answers SERVFAIL for responses of more than 512 bytes.
#[tokio::test]
async fn other_names_are_forwarded_and_responses_of_any_size_passed_on() {
    for size in [1, 600, 5000] {
        let server = upstream(size).await;
        let proxy = proxy(&[&server], true, false).await;
        for (name, kind) in [("other.example", TYPE_A), ("web.example", TYPE_TXT)] {
            let query = query(2, name, kind);
            let mut expected = query.clone();
            expected[2] |= 0x80;
            expected.extend(std::iter::repeat_n(7, size));
            assert_eq!(udp(proxy, &query).await, expected);
            assert_eq!(tcp(proxy, &[query]).await, [expected]);
        }
    }
}

#[tokio::test]
async fn another_server_is_asked_if_one_is_silent() {
    for is_parallel in [false, true] {
        let (silent, server) = (upstream(0).await, upstream(1).await);
        let proxy = proxy(&[&silent, &server], true, is_parallel).await;
        for id in 0..=u8::MAX {
            let response = udp(proxy, &query(id, "other.example", TYPE_A)).await;
            assert_eq!((response[1], response[3] & 0xf), (id, 0));
            if silent.queries.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
        assert!(silent.queries.load(Ordering::Relaxed) > 0);
    }
    let silent = upstream(0).await;
    let proxy = proxy(&[&silent], true, false).await;
    assert_eq!(udp(proxy, &query(3, "other.example", TYPE_A)).await[3] & 0xf, 2);
}

#[tokio::test]
async fn without_a_table_every_name_fails() {
    let server = upstream(1).await;
    let proxy = proxy(&[&server], false, false).await;
    assert_eq!(udp(proxy, &query(1, "other.example", TYPE_A)).await[3] & 0xf, 2);
    assert_eq!(server.queries.load(Ordering::Relaxed), 0);
}
