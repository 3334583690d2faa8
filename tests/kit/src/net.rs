//! Addresses of our own: every test gets a loopback address for itself, so that fixed ports never clash.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

/// An address of 127.0.0.0/8 that nobody else in this process, and hardly anybody outside, uses.
///
/// # Panics
/// After some 65,000 addresses.
pub fn loopback() -> IpAddr {
    loopbacks(1)
}

/// The first of so many such addresses in a row.
///
/// # Panics
/// After some 65,000 addresses.
pub fn loopbacks(count: u32) -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(count, Ordering::Relaxed);
    let [_, _, high, low] = number.to_be_bytes();
    assert!(number + count < 0xffff, "no loopback addresses are left");
    // 127.0.0.x is everybody's; the process chooses its own second byte.
    let second = u8::try_from(std::process::id() % 200).expect("below 200") + 40;
    IpAddr::V4(Ipv4Addr::new(127, second, high, low))
}
