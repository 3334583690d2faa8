//! What every HTTP listener must hold against: clients that are active, that do not end or do not read,
//! that ask for upgrades, and that speak HTTP/2.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Strength, keep_alive};
use crate::addresses;
use crate::hostile::{HostileClients, Then};
use crate::http2::{self, Request};
use crate::request::Tls;

/// The body that a slow client announces, in bytes.
const ANNOUNCED: usize = 4 << 20;
/// A head that is nearly as long as the shortest limit of a listener.
const LONG_HEAD: usize = 7 << 10;
/// Requests that are sent at once.
const PIPELINED: usize = 64;
/// Requests on one HTTP/2 connection.
const STREAMS: u32 = 100;
/// Requests of a client that resets them, on one connection.
const RESETS: u32 = 2000;
/// Addresses of a client that has many.
const ADDRESSES: u32 = 200;

/// A listener for HTTP.
#[derive(Clone)]
pub(super) struct HttpListener {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Tls>,
    /// The method and the path of a request that is answered.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    /// A request on a connection that stays open.
    pub(super) request: Vec<u8>,
}

impl HttpListener {
    /// Returns a listener that answers GET requests for a path.
    pub(super) fn get(address: SocketAddr, path: &'static str) -> Self {
        Self { address, tls: None, method: "GET", path, request: keep_alive(address, path) }
    }

    /// Returns each kind of attack. All hostile clients of one have the same address, except for the first
    /// one and the last.
    pub(super) fn attacks(&self, strength: Strength) -> Vec<(&'static str, Vec<HostileClients>)> {
        vec![
            ("two sources, requests all the time", vec![self.active(strength)]),
            ("pipelined requests, nothing is read", vec![self.pipelined(strength)]),
            ("heads and bodies that never end", self.endless(strength)),
            ("upgrades", self.upgrades()),
            ("HTTP/2 without a window, resets, endless heads, pings", self.http2(strength)),
            ("200 addresses, requests all the time", vec![self.many_addresses()]),
        ]
    }

    fn clients(&self, connections: usize, bytes: Vec<u8>, then: Then) -> HostileClients {
        HostileClients {
            sources: addresses(1),
            address: self.address,
            connections,
            per_second: Strength::PER_SECOND,
            tls: self.tls.clone(),
            bytes,
            then,
        }
    }

    fn active(&self, strength: Strength) -> HostileClients {
        let repeat = Then::Repeat { every: Duration::from_millis(100) };
        let clients = self.clients(strength.connections, self.request.clone(), repeat);
        HostileClients { sources: addresses(2), ..clients }
    }

    fn many_addresses(&self) -> HostileClients {
        let repeat = Then::Repeat { every: Duration::from_millis(200) };
        let clients = self.clients(4, self.request.clone(), repeat);
        HostileClients { sources: addresses(ADDRESSES), per_second: 4, ..clients }
    }

    fn pipelined(&self, strength: Strength) -> HostileClients {
        let requests = self.request.repeat(PIPELINED);
        let again = Then::Send { bytes: requests.clone().into(), every: Duration::from_millis(20) };
        self.clients(strength.connections / 4, requests, again)
    }

    pub(super) fn endless(&self, strength: Strength) -> Vec<HostileClients> {
        let head = format!("{} {} HTTP/1.1\r\nHost: attack\r\n", self.method, self.path);
        let body = format!("{head}Content-Length: {ANNOUNCED}\r\n\r\n").into_bytes();
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        let chunk = Then::Send { bytes: b"1\r\nx\r\n".as_slice().into(), every: Duration::from_millis(10) };
        let long = format!("{head}X-Header: {}", "x".repeat(LONG_HEAD)).into_bytes();
        let connections = strength.connections / 3;
        let all = [
            self.clients(connections, long, Then::send_blanks(1, Duration::from_millis(500))),
            self.clients(connections, body, Then::send_blanks(16 << 10, Duration::from_millis(100))),
            self.clients(connections, chunked, chunk),
        ];
        of_one_source(all)
    }

    fn upgrades(&self) -> Vec<HostileClients> {
        // Envoy logs the path of `connect-udp` if it does not name a target.
        let path = format!("/{}", "a".repeat(4000));
        let upgrade = |protocol: &str, more: &str| {
            let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n", "b".repeat(2000));
            format!("{head}Connection: Upgrade\r\nUpgrade: {protocol}\r\n{more}\r\n").into_bytes()
        };
        let all = [
            upgrade("connect-udp", "Capsule-Protocol: ?1\r\n"),
            upgrade(
                "websocket",
                "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            ),
            upgrade("h2c", "HTTP2-Settings: AAMAAABkAAQAAP__\r\n"),
            b"CONNECT attack:80 HTTP/1.1\r\nHost: attack:80\r\n\r\n".to_vec(),
        ];
        let close = Then::Close { after: Duration::ZERO };
        of_one_source(all.map(|request| self.clients(32, request, close.clone())))
    }

    pub(super) fn http2(&self, strength: Strength) -> Vec<HostileClients> {
        let request = Request { method: self.method, path: self.path, headers: &[], body: None };
        self.http2_of(request, strength)
    }

    pub(super) fn http2_of(&self, request: Request<'_>, strength: Strength) -> Vec<HostileClients> {
        let (begin, more) = http2::endless_head(request);
        let (connections, pause) = (strength.connections / 8, Duration::from_millis(10));
        let pings = Then::Send { bytes: http2::pings(64).into(), every: pause };
        let continued = Then::Send { bytes: more.into(), every: pause };
        let all = [
            self.clients(connections, http2::requests_without_window(request, STREAMS), Then::Wait),
            self.clients(16, http2::resets(request, RESETS), Then::Wait),
            self.clients(connections, begin, continued),
            self.clients(connections, http2::closed_window(), pings),
        ];
        of_one_source(all)
    }
}

fn of_one_source<const N: usize>(mut clients: [HostileClients; N]) -> Vec<HostileClients> {
    let source = addresses(1);
    clients.iter_mut().for_each(|clients| clients.sources = source.clone());
    clients.into()
}
