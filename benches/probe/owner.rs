//! Finds the process that listens on a port, by `/proc`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use kit::process::Process;

/// Returns the process that listens at `address`; `None` if no process does or if it belongs to
/// another user.
pub(crate) fn of(address: SocketAddr) -> Option<Process> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().find_map(|table| {
        let text = std::fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| listener(line, address))
    })?;
    let socket = PathBuf::from(format!("socket:[{inode}]"));
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find_map(|pid: u32| {
        let mut files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
        files
            .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target == socket))
            .then_some(Process::new(pid))
    })
}

/// Returns the inode in a line of `/proc/net/tcp` if its socket listens at `address` or at the
/// unspecified address.
fn listener(line: &str, address: SocketAddr) -> Option<u64> {
    const LISTEN: &str = "0A";
    let columns: Vec<&str> = line.split_whitespace().collect();
    let &[_, local, _, LISTEN, _, _, _, _, _, inode, ..] = columns.as_slice() else { return None };
    let (ip, port) = local.split_once(':')?;
    let ip = decode(ip)?;
    let is_there = ip == address.ip() || ip.is_unspecified();
    (is_there && u16::from_str_radix(port, 16) == Ok(address.port())).then(|| inode.parse().ok())?
}

/// Decodes an address as the kernel prints it: 32-bit words, each a number in the byte order of
/// this machine.
fn decode(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    if hex.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let mut bytes = [0; 16];
    for (number, place) in bytes.chunks_exact_mut(4).enumerate() {
        place.copy_from_slice(&word(number * 8)?);
    }
    Some(Ipv6Addr::from(bytes).to_canonical())
}
