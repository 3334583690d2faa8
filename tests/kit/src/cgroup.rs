//! A control group: the memory that the kernel charges to some processes together, as a node charges it to
//! a container. Versions 2 and 1 of control groups; needs root.

use std::fs;
use std::path::{Path, PathBuf};

/// Where version 2 is mounted, and the memory controller of version 1.
const V2: &str = "/sys/fs/cgroup";
const V1: &str = "/sys/fs/cgroup/memory";

/// A control group.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
    is_v2: bool,
    /// Whether it is removed on drop. Its processes must have exited then.
    is_ours: bool,
}

/// Charged memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charged {
    /// Memory of processes that is not a copy of files.
    pub anonymous: u64,
    /// Files in memory, such as those of a volume with `medium: Memory`.
    pub shared: u64,
    /// Memory of the kernel, for example for sockets and page tables.
    pub kernel: u64,
    /// Everything without files that have not been used for a while: what kubelet calls the working set.
    pub working_set: u64,
}

impl Cgroup {
    /// Creates a group with this name and the ID of this process.
    ///
    /// # Errors
    /// If no memory controller is mounted, or this user may not create groups.
    pub fn new(name: &str) -> Result<Self, String> {
        let is_v2 = Path::new(V2).join("cgroup.controllers").exists();
        let root = if is_v2 { V2 } else { V1 };
        let folder = Path::new(root).join(format!("app-health-{name}-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}; run as root", folder.display()))?;
        let group = Self { folder, is_v2, is_ours: true };
        group.charged()?;
        Ok(group)
    }

    /// Returns the group of a process, such as that of its container.
    ///
    /// # Errors
    /// If the process has exited, or its group cannot be read.
    pub fn of(process: u32) -> Result<Self, String> {
        let file = format!("/proc/{process}/cgroup");
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        let is_v2 = Path::new(V2).join("cgroup.controllers").exists();
        let (root, prefix) = if is_v2 { (V2, "0::/") } else { (V1, ":memory:/") };
        let path = text.lines().find_map(|line| Some(line.split_once(prefix)?.1));
        let path = path.ok_or_else(|| format!("{file} names no group of the memory controller: {text:?}"))?;
        Ok(Self { folder: Path::new(root).join(path), is_v2, is_ours: false })
    }

    /// Returns the file into which a process writes its ID to become a member.
    pub fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }

    /// Sets the memory limit, in bytes.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn limit(&self, bytes: u64) -> Result<(), String> {
        let file = self.folder.join(if self.is_v2 { "memory.max" } else { "memory.limit_in_bytes" });
        fs::write(&file, bytes.to_string()).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Returns how many processes the kernel has killed because of the limit.
    ///
    /// # Errors
    /// If the group cannot be read.
    pub fn oom_kills(&self) -> Result<u64, String> {
        self.field(if self.is_v2 { "memory.events" } else { "memory.oom_control" }, "oom_kill")
    }

    /// Returns the memory that is charged now.
    ///
    /// # Errors
    /// If the group cannot be read.
    pub fn charged(&self) -> Result<Charged, String> {
        let stat = |name| self.field("memory.stat", name);
        let (anonymous, shared, kernel, current, unused) = if self.is_v2 {
            let current = self.number("memory.current")?;
            (stat("anon")?, stat("shmem")?, stat("kernel")?, current, stat("inactive_file")?)
        } else {
            let kernel = self.number("memory.kmem.usage_in_bytes")?;
            let current = self.number("memory.usage_in_bytes")?;
            (stat("total_rss")?, stat("total_shmem")?, kernel, current, stat("total_inactive_file")?)
        };
        Ok(Charged { anonymous, shared, kernel, working_set: current.saturating_sub(unused) })
    }

    fn number(&self, file: &str) -> Result<u64, String> {
        let text = self.read(file)?;
        text.trim().parse().map_err(|_| format!("{file}: {text:?} is not a number"))
    }

    fn field(&self, file: &str, name: &str) -> Result<u64, String> {
        let text = self.read(file)?;
        field(&text, name).ok_or_else(|| format!("{file} of {}: no {name}", self.folder.display()))
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let file = self.folder.join(file);
        fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        // A process that is being killed is a member until the kernel has freed its memory.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// Returns a number of a file with a name and a number in each line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::field;

    #[test]
    fn fields_have_whole_names() {
        let text = "anon_thp 7\nanon 4096\noom_kill_disable 0\noom_kill 3\n";
        assert_eq!(field(text, "anon"), Some(4096));
        assert_eq!(field(text, "oom_kill"), Some(3));
        assert_eq!(field(text, "file"), None);
    }
}
