use std::net::TcpListener;

use super::*;

#[test]
fn the_range_of_this_process_is_reserved() {
    let IpAddr::V4(ip) = loopback() else { panic!("an IPv4 address") };
    assert!(SECOND_BYTES.contains(&ip.octets()[1]));
    let (other, _lock) = reserve();
    assert_ne!(other, ip.octets()[1]);
}

#[test]
fn the_accept_queue_is_counted() {
    let listener = TcpListener::bind((loopback(), 0)).expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    assert_eq!(accept_queue(address), 0);
    let _connections = [(); 2].map(|()| std::net::TcpStream::connect(address).expect("the port is open"));
    assert_eq!(accept_queue(address), 2);
}
