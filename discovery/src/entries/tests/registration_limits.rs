//! Tests of how many entries one certificate may register.

use std::net::IpAddr;

use super::*;

/// Opens a stream of an agent at this address with a certificate of `account`, on which the code of a
/// rejection is returned.
fn open(case: &mut Case, stream: StreamId, address: IpAddr, account: &str) -> Option<Code> {
    let node = Node {
        namespace: Some("shop".to_owned()),
        group: Some("payments".to_owned()),
        instance_ips: vec![address.to_string()],
        app_health: true,
        ..Node::default()
    };
    let identity = Identity { namespace: "shop".to_owned(), service_account: account.to_owned() };
    let (peer, identity, node) = ((address, 4000).into(), Some(identity), Box::new(node));
    let effects = case.input(Input::Opened { stream, peer, identity, node });
    effects.into_iter().find_map(|effect| match effect {
        Effect::Command { command: StreamCommand::Close { code, .. }, .. } => Some(code),
        _ => None,
    })
}

fn of_network(network: u16, host: u64) -> IpAddr {
    let host = u16::try_from(host).expect("few");
    [0x2001, 0xdb8, 0, network, 0, 0, 0, host].into()
}

fn case(settings: Settings) -> Case {
    let mut case = Case::new(settings);
    case.word("config probe");
    case
}

#[test]
fn one_certificate_registers_few_machines_of_one_network() {
    let mut case = case(settings());
    let rejected = (1..=200).filter_map(|stream| open(&mut case, stream, of_network(1, stream), "payments"));
    let rejected: Vec<Code> = rejected.collect();
    assert_eq!(rejected, [Code::ResourceExhausted; 136]);
    assert_eq!(case.entries.workloads().count(), 64);
    // Another network, another certificate, and a machine that is registered already.
    assert_eq!(open(&mut case, 201, of_network(2, 1), "payments"), None);
    assert_eq!(open(&mut case, 202, of_network(1, 201), "refunds"), None);
    case.input(Input::Closed { stream: 1 });
    assert_eq!(open(&mut case, 203, of_network(1, 1), "payments"), None);
    // A machine that has left and was deleted does not count.
    case.input(Input::Closed { stream: 2 });
    case.wait(11.0);
    case.input(Input::Preserved(BTreeMap::new()));
    case.wait(200.0);
    case.input(Input::Preserved(BTreeMap::new()));
    assert_eq!(open(&mut case, 204, of_network(1, 204), "payments"), None);
    assert_eq!(open(&mut case, 205, of_network(1, 205), "payments"), Some(Code::ResourceExhausted));
}

#[test]
fn machines_of_one_certificate_are_limited_at_all_addresses() {
    let mut case = case(Settings { max_machines_per_identity: 20, ..settings() });
    let address = |stream: u64| IpAddr::from([10, 0, 0, u8::try_from(stream).expect("few")]);
    for stream in 1..=20 {
        assert_eq!(open(&mut case, stream, address(stream), "payments"), None);
    }
    assert_eq!(open(&mut case, 21, address(21), "payments"), Some(Code::ResourceExhausted));
    assert_eq!(open(&mut case, 22, address(22), "refunds"), None);
}

#[test]
fn machines_from_the_store_count() {
    let mut case = case(settings());
    for stream in 1..=64 {
        open(&mut case, stream, of_network(1, stream), "payments");
    }
    case.word("restart");
    case.word("config probe");
    for stream in 1..=64 {
        assert_eq!(open(&mut case, stream, of_network(1, stream), "payments"), None);
    }
    assert_eq!(open(&mut case, 65, of_network(1, 65), "payments"), Some(Code::ResourceExhausted));
}
