//! The DNS proxy of Istio's agent and ours, with the same names and the same server of the system.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use istio_agent::dns::{self, DnsConfig, DnsListeners};
use kit::{envoy, net, wait};
use mesh_dns::table::Place;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use xds::put_bytes;

use istio_tests::istio;

const QUERIES: u64 = 3000;
const MALFORMED: u64 = 500;
const SEED_VARIABLE: &str = "APP_HEALTH_SEED";
const SEED: u64 = 1;
const NAMESPACE: &str = "shop";
const DOMAIN: &str = "shop.svc.cluster.local";
const SEARCH: &str = "shop.svc.cluster.local svc.cluster.local cluster.local";
const PORT: u16 = 15053;
const DNS_PORT: u16 = 53;
/// Name, registry, short name, namespace, and addresses of the hosts.
const HOSTS: [(&str, &str, &str, &str, &[&str]); 12] = [
    ("web.shop.svc.cluster.local", "Kubernetes", "web", "shop", &["10.0.0.1"]),
    ("dual.shop.svc.cluster.local", "Kubernetes", "dual", "shop", &["10.0.0.2", "fd00::2"]),
    ("six.shop.svc.cluster.local", "Kubernetes", "six", "shop", &["fd00::3"]),
    ("db.data.svc.cluster.local", "Kubernetes", "db", "data", &["10.0.0.4", "10.0.0.5", "10.0.0.6"]),
    ("far.shop.svc.other.local", "Kubernetes", "far", "shop", &["10.0.0.7"]),
    ("dot.shop.svc.cluster.local.", "Kubernetes", "dot", "shop", &["10.0.0.8"]),
    ("API.Example.com", "External", "", "", &["192.0.2.1"]),
    ("*.wild.example", "External", "", "", &["192.0.2.2", "2001:db8::2"]),
    ("*.svc.cluster.local", "External", "", "", &["192.0.2.3"]),
    ("exshop.svc.cluster.local", "External", "", "", &["192.0.2.5"]),
    ("cluster.local", "External", "", "", &["192.0.2.4"]),
    ("none.example", "External", "", "", &["no address"]),
];
const LABELS: [&str; 14] =
    ["web", "dual", "six", "db", "far", "api", "wild", "x", "shop", "data", "svc", "example", "com", "other"];
/// A, AAAA, CNAME, PTR, TXT, SRV and ANY.
const TYPES: [u16; 7] = [1, 28, 5, 12, 16, 33, 255];

/// The Go program; it is killed on drop.
struct Theirs(Child);

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a response says, without the order of its records.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: u8,
    is_authoritative: bool,
    is_truncated: bool,
    /// Owner, type, time to live in seconds, and content.
    records: BTreeSet<(String, u16, u32, Vec<u8>)>,
    has_edns: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Istio's DNS proxy: ./justw test-istio"]
async fn dns_answers_are_equal() {
    let set = std::env::var_os(SEED_VARIABLE).and_then(|seed| seed.to_str()?.parse::<u64>().ok());
    let first = set.unwrap_or(SEED);
    println!("{QUERIES} queries from seed {first}");
    let folder = envoy::folder("istio-dns");
    let [theirs, ours, upstream] = [(); 3].map(|()| net::loopback());
    serve_upstream(SocketAddr::new(upstream, DNS_PORT)).await;
    let table = table();
    let _theirs = start_theirs(&folder, &table, SocketAddr::new(theirs, PORT), upstream);
    let config = DnsConfig {
        addresses: vec![SocketAddr::new(ours, PORT)],
        servers: vec![SocketAddr::new(upstream, DNS_PORT)],
        timeout: Duration::from_secs(5),
        is_parallel: false,
        place: Place::new(NAMESPACE, DOMAIN, SEARCH.split(' ').next()),
    };
    let listeners = DnsListeners::bind(&config).expect("free ports");
    let (own, _table, _task) = dns::start(config, listeners, Arc::default(), fastrand::Rng::new());
    (own.accept)(&table).expect("a table");
    // The same ones in each run: two implementations differ in rare kinds of garbage.
    let malformed_from = if set.is_some() { first } else { 0 };
    for seed in malformed_from..malformed_from + MALFORMED {
        let message = malformed(seed);
        let [expected, found] =
            [theirs, ours].map(|ip| answers_to_malformed(SocketAddr::new(ip, PORT), message.clone()));
        let (mut expected, found) = (expected.await, found.await);
        if let Some(code) = refused_by_ours(&message) {
            expected = (vec![[0x10 | message[2] >> 3 & 0xf, code]], true);
        }
        assert_eq!(found, expected, "{SEED_VARIABLE}={seed}: {message:02x?}");
    }
    for seed in first..first + QUERIES {
        let (query, is_tcp) = query(seed);
        let [expected, found] =
            [theirs, ours].map(|ip| ask(SocketAddr::new(ip, PORT), query.clone(), is_tcp));
        let (expected, found) = (said(&expected.await, &query), said(&found.await, &query));
        let name = name(&query, 12).0;
        assert_eq!(found, expected, "{SEED_VARIABLE}={seed}: {name}, TCP: {is_tcp}, {query:02x?}");
    }
}

/// An encoded name table.
fn table() -> Bytes {
    let message = |fields: &[(u64, &[u8])]| {
        let mut to = BytesMut::new();
        fields.iter().for_each(|(number, content)| put_bytes(&mut to, *number, content));
        to
    };
    let mut table = BytesMut::new();
    for (name, registry, short, namespace, ips) in HOSTS {
        let mut fields: Vec<(u64, &[u8])> = ips.iter().map(|ip| (1, ip.as_bytes())).collect();
        fields.extend([(2, registry.as_bytes()), (3, short.as_bytes()), (4, namespace.as_bytes())]);
        put_bytes(&mut table, 1, &message(&[(1, name.as_bytes()), (2, &message(&fields))]));
    }
    table.freeze()
}

/// Starts Istio's proxy with a `resolv.conf` of its own.
fn start_theirs(folder: &Path, table: &Bytes, address: SocketAddr, upstream: IpAddr) -> Theirs {
    let (conf, names) = (folder.join("resolv.conf"), folder.join("names"));
    fs::write(&conf, format!("nameserver {upstream}\nsearch {SEARCH}\n")).expect("a writable folder");
    fs::write(&names, table).expect("a writable folder");
    let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(conf).arg(istio("reference")).arg("dns");
    command.args([NAMESPACE, DOMAIN, &address.to_string()]).arg(names);
    let log = fs::File::create(folder.join("log")).expect("a writable folder");
    let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("unshare");
    let theirs = Theirs(child);
    let is_there = || std::net::TcpStream::connect(address).is_ok();
    let what =
        || format!("Istio's proxy listens: {}", fs::read_to_string(folder.join("log")).unwrap_or_default());
    wait::until_blocking(what, is_there);
    theirs
}

/// A query that depends on the seed, and whether it is sent over TCP.
fn query(seed: u64) -> (Vec<u8>, bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut name = match random.u8(..3) {
        0 => HOSTS[random.usize(..HOSTS.len())].0.trim_end_matches('.').replace('*', "any"),
        _ => (0..random.usize(1..4))
            .map(|_| LABELS[random.usize(..LABELS.len())])
            .collect::<Vec<_>>()
            .join("."),
    };
    if random.bool() {
        let suffixes =
            ["shop.svc.cluster.local", "svc.cluster.local", "svc", "shop", "cluster.local", "example"];
        name = format!("{name}.{}", suffixes[random.usize(..suffixes.len())]);
    }
    if random.u8(..4) == 0 {
        name =
            name.chars().map(|char| if random.bool() { char.to_ascii_uppercase() } else { char }).collect();
    }
    let with_edns = random.bool();
    let mut query = vec![
        random.u8(..),
        random.u8(..),
        u8::from(random.bool()),
        0,
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        u8::from(with_edns),
    ];
    for label in name.split('.') {
        query.push(u8::try_from(label.len()).expect("a label"));
        query.extend_from_slice(label.as_bytes());
    }
    query.push(0);
    query
        .extend_from_slice(&TYPES[if random.bool() { 0 } else { random.usize(..TYPES.len()) }].to_be_bytes());
    query.extend_from_slice(&[0, 1]);
    if with_edns {
        query.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    }
    (query, random.u8(..4) == 0)
}

/// A query of which some bytes are others or missing.
fn malformed(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut message, _) = query(seed);
    for _ in 0..random.usize(1..4) {
        // Most of what is checked is in the header.
        let end = if random.bool() { 12 } else { message.len() };
        let index = random.usize(2..end);
        message[index] = random.u8(..);
    }
    if random.u8(..3) == 0 {
        message.truncate(random.usize(2..message.len()));
    }
    // The number tells it from the query that follows.
    (message[0], message[1]) = (0, 0);
    message
}

/// The code with which ours refuses a message that Istio's proxy passes on: NOTIFY, which is for servers of zones, RFC
/// 1996, and a question without its type or class, RFC 1035.
fn refused_by_ours(message: &[u8]) -> Option<u8> {
    const NOTIFY: u8 = 4;
    let (is_response, operation) = (message.get(2)? & 0x80 != 0, message[2] >> 3 & 0xf);
    let has_one_question = message.get(4..6)? == [0, 1];
    let is_incomplete = || {
        let mut at = 12;
        while message.get(at).is_some_and(|length| *length != 0) {
            at += 1 + usize::from(message[at]);
        }
        message.len() < at + 5
    };
    match operation {
        _ if is_response || message.len() < 12 => None,
        NOTIFY => Some(4),
        0 if has_one_question && is_incomplete() => Some(1),
        _ => None,
    }
}

/// Sends a message and then a query over one TCP connection. Returns the kinds and codes of the responses to the first, and
/// whether the connection stays open, so that the second gets one too.
async fn answers_to_malformed(server: SocketAddr, message: Vec<u8>) -> (Vec<[u8; 2]>, bool) {
    let (mut following, _) = query(0);
    (following[0], following[1]) = (1, 1);
    let asked = async {
        let mut stream = TcpStream::connect(server).await.expect("a server");
        for message in [&message, &following] {
            let length = u16::try_from(message.len()).expect("a short message");
            // The server may have closed the connection.
            let _ = stream.write_all(&[&length.to_be_bytes(), message.as_slice()].concat()).await;
        }
        let mut answers = Vec::new();
        while let Ok(length) = stream.read_u16().await {
            let mut response = vec![0; length.into()];
            if stream.read_exact(&mut response).await.is_err() {
                break;
            }
            if response[..2] == [1, 1] {
                return (answers, true);
            }
            answers.push([response[2] >> 3, response[3] & 0xf]);
        }
        (answers, false)
    };
    tokio::time::timeout(wait::timeout(), asked).await.expect("an answer, or the end of the connection")
}

/// Sends a query, and receives the response.
async fn ask(server: SocketAddr, query: Vec<u8>, is_tcp: bool) -> Vec<u8> {
    let asked = async {
        if is_tcp {
            let mut stream = TcpStream::connect(server).await.expect("a server");
            let length = u16::try_from(query.len()).expect("a query");
            stream.write_all(&[&length.to_be_bytes(), query.as_slice()].concat()).await.expect("a server");
            let mut response = vec![0; stream.read_u16().await.expect("a response").into()];
            stream.read_exact(&mut response).await.expect("a response");
            return response;
        }
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
        socket.send_to(&query, server).await.expect("a server");
        let mut response = vec![0; 65_535];
        let length = socket.recv(&mut response).await.expect("a response");
        response.truncate(length);
        response
    };
    tokio::time::timeout(wait::timeout(), asked).await.expect("a response")
}

/// Answers for the names that no table contains, with what depends on the name: a code, an address, an alias with its
/// address, or more addresses than fit into 512 bytes.
fn answer_of_upstream(query: &[u8], is_tcp: bool) -> Vec<u8> {
    const ADDRESS: [u8; 14] = [0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 51, 100, 0];
    const ALIAS: [u8; 18] = [0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 90, 0, 6, 3, b'o', b'w', b'n', 0xc0, 12];
    const EDNS: [u8; 11] = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];
    let (name, end) = name(query, 12);
    let has_edns = query[11] == 1;
    let mut head = query[..end + 4].to_vec();
    (head[2], head[3]) = (head[2] | 0x80, 0x80);
    let edns = if has_edns { &EDNS[..] } else { &[] };
    let alias_content = u8::try_from(end + 4 + 12).expect("a short query");
    let owned_by = |owner: u8, last: u8| [&[0xc0, owner], &ADDRESS[..13], &[last]].concat();
    let kind = name.to_lowercase().bytes().map(usize::from).sum::<usize>() % 6;
    let records = match kind {
        0 => vec![owned_by(12, 1)],
        1 => vec![ALIAS.to_vec(), owned_by(alias_content, 2)],
        2 => (0..40).map(|last| owned_by(12, last)).collect(),
        _ => Vec::new(),
    };
    // No such name, a failure of the server, and a refusal.
    head[3] |= [0, 0, 0, 3, 2, 5][kind];
    let message = |head: &[u8], records: &[Vec<u8>]| {
        let mut message = head.to_vec();
        message[7] = u8::try_from(records.len()).expect("few records");
        [message, records.concat(), edns.to_vec()].concat()
    };
    let limit = if has_edns { 1232 } else { 512 };
    let whole = message(&head, &records);
    if is_tcp || whole.len() <= limit {
        return whole;
    }
    head[2] |= 2;
    message(&head, &[])
}

async fn serve_upstream(address: SocketAddr) {
    let socket = UdpSocket::bind(address).expect("the port of DNS");
    socket.set_nonblocking(true).expect("a socket");
    let socket = tokio::net::UdpSocket::from_std(socket).expect("a socket");
    let listener = TcpListener::bind(address).await.expect("the port of DNS");
    tokio::spawn(async move {
        let mut query = vec![0; 4096];
        while let Ok((length, client)) = socket.recv_from(&mut query).await {
            let _ = socket.send_to(&answer_of_upstream(&query[..length], false), client).await;
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Ok(length) = stream.read_u16().await {
                    let mut query = vec![0; length.into()];
                    if stream.read_exact(&mut query).await.is_err() {
                        return;
                    }
                    let response = answer_of_upstream(&query, true);
                    let length = u16::try_from(response.len()).expect("a short response");
                    if stream.write_all(&[&length.to_be_bytes(), response.as_slice()].concat()).await.is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
}

fn said(response: &[u8], query: &[u8]) -> Said {
    assert_eq!(response[..2], query[..2], "the number of the query");
    let (asked, mut at) = name(response, 12);
    assert_eq!(asked.to_lowercase(), name(query, 12).0.to_lowercase(), "the question");
    at += 4;
    let mut records = BTreeSet::new();
    for _ in 0..u16::from_be_bytes([response[6], response[7]]) {
        let (owner, end) = name(response, at);
        let kind = u16::from_be_bytes([response[end], response[end + 1]]);
        let ttl = response[end + 4..].first_chunk::<4>().map_or(0, |ttl| u32::from_be_bytes(*ttl));
        let length = usize::from(u16::from_be_bytes([response[end + 8], response[end + 9]]));
        let data = end + 10;
        // The name of an alias may be compressed.
        let content = match kind {
            5 => name(response, data).0.to_lowercase().into_bytes(),
            _ => response[data..data + length].to_vec(),
        };
        records.insert((owner.to_lowercase(), kind, ttl, content));
        at = data + length;
    }
    Said {
        code: response[3] & 0xf,
        is_authoritative: response[2] & 4 != 0,
        is_truncated: response[2] & 2 != 0,
        records,
        has_edns: response[11] != 0,
    }
}

/// Reads a name, which may be compressed, and returns the position after it.
fn name(message: &[u8], start: usize) -> (String, usize) {
    let (mut labels, mut at, mut end) = (Vec::new(), start, None);
    loop {
        let length = usize::from(message[at]);
        match length {
            0 => break,
            0xc0.. => {
                end.get_or_insert(at + 2);
                at = (length & 0x3f) << 8 | usize::from(message[at + 1]);
            }
            _ => {
                labels.push(String::from_utf8_lossy(&message[at + 1..=at + length]).into_owned());
                at += 1 + length;
            }
        }
    }
    (labels.join("."), end.unwrap_or(at + 1))
}
