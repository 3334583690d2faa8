//! The container in which attacked processes run: a control group with the documented memory limit, at which
//! the kernel kills them.

use kit::cgroup::Cgroup;
use kit::launcher;
use kit::terminal::say;

/// The control group of all processes that are started while it exists; they must have ended when it is
/// dropped.
pub struct Container {
    _group: Option<Cgroup>,
}

impl Container {
    /// Creates the group. Without root there is none, which is said, and only the measured memory is compared
    /// with the limit.
    pub fn new(name: &str, limit: u64) -> Self {
        let group = Cgroup::new(&format!("attack-{name}")).and_then(|group| {
            group.limit(limit)?;
            Ok(group)
        });
        match group {
            Ok(group) => {
                launcher::set_group(Some(group.members()));
                Self { _group: Some(group) }
            }
            Err(reason) => {
                say(&format!("{name}: the memory limit is not enforced: {reason}\n"));
                Self { _group: None }
            }
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        launcher::set_group(None);
    }
}
