//! The `User-Agent` of requests to the application.

use crate::path::ProbeKind;

/// Returns the `User-Agent` to send. Only kubelet's own values are passed on; any other value is
/// replaced, so a client cannot send text of its choice to the application.
pub fn user_agent(caller: Option<&[u8]>, kind: ProbeKind) -> &[u8] {
    let version = |text: &[u8]| {
        (1..=16).contains(&text.len())
            && text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+'))
    };
    let kubelet = |caller: &&[u8]| {
        [b"kube-probe/".as_slice(), b"kube-lifecycle/"]
            .into_iter()
            .any(|product| caller.strip_prefix(product).is_some_and(version))
    };
    match (caller.filter(kubelet), kind.is_hook()) {
        (Some(caller), _) => caller,
        (None, false) => b"kube-probe/app-health",
        (None, true) => b"kube-lifecycle/app-health",
    }
}

#[cfg(test)]
mod tests;
