//! Which processes may use the local server through its Unix socket: the kernel reports the user of
//! each peer (`SO_PEERCRED`), so that a wrong mode of the socket file or of its directory admits no
//! other user.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::unistd::{Gid, Group, chown, geteuid};
use serving::http_server::{Plaintext, Transport};
use serving::source::Source;
use tokio::net::unix::UCred;
use tracing::warn;

/// Connection of the HTTP server, before and after its handshake.
type Stream = <Plaintext as Transport>::Stream;

/// Mode of the socket for a group.
const GROUP_MODE: u32 = 0o660;

/// Accepts TCP connections, and connections to the Unix socket by root, by the agent's own user, and
/// by members of the group.
#[derive(Debug, Clone, Copy)]
pub struct LocalPeers {
    own: u32,
    group: Option<u32>,
}

impl LocalPeers {
    pub fn new(group: Option<Gid>) -> Self {
        Self { own: geteuid().as_raw(), group: group.map(Gid::as_raw) }
    }

    /// `groups` returns the supplementary groups of a process.
    fn admits(self, peer: UserAndGroup, groups: impl FnOnce() -> Vec<u32>) -> bool {
        peer.user == 0
            || peer.user == self.own
            || self.group.is_some_and(|group| peer.group == group || groups().contains(&group))
    }
}

#[derive(Debug, Clone, Copy)]
struct UserAndGroup {
    user: u32,
    group: u32,
}

impl Transport for LocalPeers {
    type Stream = Stream;

    async fn accept(&self, stream: Stream, _source: Option<Source>) -> io::Result<Stream> {
        if let Stream::Unix(socket) = &stream {
            let peer = socket.peer_cred()?;
            let user_and_group = UserAndGroup { user: peer.uid(), group: peer.gid() };
            if !self.admits(user_and_group, || supplementary_groups(peer)) {
                warn!(uid = peer.uid(), pid = peer.pid(), "connection to the local socket rejected");
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        Ok(stream)
    }

    fn socket(stream: &Stream) -> &Stream {
        stream
    }
}

/// Gives the socket to `group`, whose members may then use it.
pub fn give_to_group(socket: &Path, group: Gid) -> io::Result<()> {
    chown(socket, None, Some(group))?;
    fs::set_permissions(socket, Permissions::from_mode(GROUP_MODE))
}

/// Returns the group with this name or number; `None` if there is none.
pub fn find_group(name: &str) -> Option<Gid> {
    let number = name.parse().ok().map(Gid::from_raw);
    number.or_else(|| Group::from_name(name).ok().flatten().map(|group| group.gid))
}

/// Reads the supplementary groups of the peer, which `SO_PEERCRED` lacks.
fn supplementary_groups(peer: UCred) -> Vec<u32> {
    let status = peer.pid().and_then(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok());
    parse_groups(&status.unwrap_or_default())
}

fn parse_groups(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    line.split_whitespace().filter_map(|group| group.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
