use std::net::IpAddr;

use serving::http_server::{Peer, Transport as _};

use super::ProbeClients;

fn clients(allowed: &[&str], node: &[&str]) -> ProbeClients {
    let blocks = allowed.iter().map(|block| block.parse().expect("a block")).collect();
    ProbeClients::new(blocks, node.iter().map(|ip| ip.parse().expect("an address")).collect())
}

fn peer(ip: &str) -> Peer {
    Peer::Tcp((ip.parse::<IpAddr>().expect("an address"), 1).into())
}

#[test]
fn who_may_connect() {
    let everybody = clients(&[], &[]);
    let some = clients(&["10.0.0.0/8", "fd00::1"], &[]);
    for (ip, is_allowed) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("fd00::1", true),
        ("127.0.0.1", true),
        ("::1", true),
        ("127.0.0.6", false),
        ("192.0.2.1", false),
        ("fd00::2", false),
    ] {
        assert!(everybody.admits_peer(peer(ip)), "{ip}");
        assert_eq!(some.admits_peer(peer(ip)), is_allowed, "{ip}");
    }
}

#[test]
fn the_node() {
    let known = clients(&[], &["192.0.2.1"]);
    for (ip, is_node) in
        [("192.0.2.1", true), ("127.0.0.1", true), ("127.0.0.6", false), ("192.0.2.2", false)]
    {
        assert_eq!(known.is_trusted_peer(peer(ip)), is_node, "{ip}");
        assert!(!clients(&[], &[]).is_trusted_peer(peer(ip)), "{ip}");
    }
}
