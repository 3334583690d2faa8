//! The interfaces and addresses of a Pod.

use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// A network of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    V4,
    V6,
    Dual,
    /// An interface with several addresses, and one that is down.
    Many,
}

impl Network {
    pub(super) const ALL: [Self; 4] = [Self::V4, Self::V6, Self::Dual, Self::Many];

    /// Returns whether a case is tried in this network.
    pub(super) fn is_of(self, seed: u64) -> bool {
        usize::try_from(seed % 4).is_ok_and(|index| Self::ALL[index] == self)
    }

    /// Moves this thread, and what it starts, into such a network.
    pub(super) fn enter(self) {
        unshare(CloneFlags::CLONE_NEWNET).expect("root may create a network");
        ip("link set lo up");
        ip("link add east type veth peer name west");
        let addresses: &[&str] = match self {
            Self::V4 => &["10.7.0.2/24 dev east", "10.8.0.2/24 dev west"],
            Self::V6 => &["fd07::2/64 dev east", "fd08::2/64 dev west"],
            Self::Dual => &["10.7.0.2/24 dev east", "fd07::2/64 dev east", "fd08::2/64 dev west"],
            Self::Many => &[
                "10.7.0.2/24 dev east",
                "10.7.0.3/24 dev east",
                "10.9.0.2/24 dev east label east:1",
                "fd07::2/64 dev east",
                "169.254.7.2/16 dev east",
                "10.8.0.2/24 dev west",
                // Also the address in INSTANCE_IP.
                "10.1.2.3/24 dev east",
            ],
        };
        for address in addresses {
            ip(&format!("address add {address}{}", if address.contains(':') { " nodad" } else { "" }));
        }
        ip("link set east up");
        if self != Self::Many {
            ip("link set west up");
        }
    }
}

fn ip(words: &str) {
    let status = Command::new("ip").args(words.split(' ')).status().expect("ip starts");
    assert!(status.success(), "ip {words}");
}
