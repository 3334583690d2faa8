//! Loopback addresses and ports that no other test uses, also not one of another process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{self, UnixDatagram};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Second bytes of the addresses: other programs use 127.0.0.x.
const SECOND_BYTES: std::ops::Range<u8> = 40..240;

/// The second byte of this process's addresses, and the lock that reserves it.
static RANGE: LazyLock<(u8, UnixDatagram)> = LazyLock::new(reserve);

/// Returns an address of 127.0.0.0/8 that is unique on this machine as long as this process runs,
/// so that tests can use fixed ports.
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
    IpAddr::V4(Ipv4Addr::new(127, RANGE.0, high, low))
}

/// Reserves a second byte with a socket in the abstract namespace. Such a socket takes no port, and
/// the kernel removes it with the process. The first attempt depends on the process ID, so that the
/// addresses of a process that was killed, whose children may still run, are not used again soon.
fn reserve() -> (u8, UnixDatagram) {
    let first = usize::try_from(std::process::id()).expect("a 64-bit machine") % SECOND_BYTES.len();
    let mut candidates = SECOND_BYTES.cycle().skip(first).take(SECOND_BYTES.len());
    let reserved = candidates.find_map(|second| {
        let name = format!("app-health tests on 127.{second}.0.0/16");
        let address = net::SocketAddr::from_abstract_name(name).expect("a short name");
        Some((second, UnixDatagram::bind_addr(&address).ok()?))
    });
    reserved.expect("fewer than 200 test processes run on this machine")
}

/// Waits until no other process uses `::1`, the only IPv6 loopback address, and reserves it until the
/// result is dropped, so that tests can use fixed ports of it.
pub async fn ipv6_loopback() -> Reservation {
    let address = net::SocketAddr::from_abstract_name("app-health tests on ::1").expect("a short name");
    loop {
        if let Ok(lock) = UnixDatagram::bind_addr(&address) {
            return Reservation { _lock: lock };
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A reserved address.
pub struct Reservation {
    _lock: UnixDatagram,
}

/// Returns the number of connections that the kernel has accepted for the listener on `address` and
/// that the application has not, in the network namespace of this thread.
///
/// # Panics
/// If no socket listens there, or the address is not IPv4.
pub fn accept_queue(address: SocketAddr) -> u32 {
    /// The state LISTEN in `/proc/net/tcp`.
    const LISTEN: &str = "0A";
    let IpAddr::V4(ip) = address.ip() else { panic!("{address} is not IPv4") };
    // The kernel prints the bytes of an address as a number in its own byte order.
    let local = format!("{:08X}:{:04X}", u32::from_ne_bytes(ip.octets()), address.port());
    let table = std::fs::read_to_string("/proc/thread-self/net/tcp").expect("a table of sockets");
    let mut rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1) == Some(&local.as_str()) && row.get(3) == Some(&LISTEN));
    let row = row.unwrap_or_else(|| panic!("no socket listens on {address}"));
    let received = row[4].rsplit(':').next().expect("two queues");
    u32::from_str_radix(received, 16).expect("a hexadecimal number")
}

#[cfg(test)]
mod tests;
