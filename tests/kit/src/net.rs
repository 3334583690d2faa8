//! Loopback addresses: every test gets a different one, so that fixed ports never clash.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns an address of 127.0.0.0/8 that is unique in this process, and very likely on this
/// machine.
///
/// # Panics
/// After some 65,000 addresses.
pub fn loopback() -> IpAddr {
    loopbacks(1)
}

/// Returns the first of `count` such consecutive addresses.
///
/// # Panics
/// After some 65,000 addresses.
pub fn loopbacks(count: u32) -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(count, Ordering::Relaxed);
    let [_, _, high, low] = number.to_be_bytes();
    assert!(number + count < 0xffff, "no loopback addresses are left");
    // Other programs use 127.0.0.x; the second byte depends on the process.
    let second = u8::try_from(std::process::id() % 200).expect("below 200") + 40;
    IpAddr::V4(Ipv4Addr::new(127, second, high, low))
}
