//! Memory and descriptors of the attacked processes.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Resident memory without mapped files, in bytes: the kernel can free pages of files at a memory
    /// limit, and kills a process for these only.
    pub memory: u64,
    pub descriptors: u64,
}

impl Usage {
    /// Returns the usage of a process; `None` if it has exited.
    pub fn of(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        Some(Self { memory: kib << 10, descriptors: u64::try_from(descriptors).ok()? })
    }
}

/// Growth of memory that is noise: a tenth, and 8 MiB.
const MEMORY_NOISE: u64 = 8 << 20;
/// Growth of descriptors that is noise: a tenth, and 32.
const DESCRIPTOR_NOISE: u64 = 32;

/// The medians of the first and of the last third of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trend {
    pub first: Usage,
    pub last: Usage,
}

impl Trend {
    /// Returns the medians of the samples, in their order; `None` if there are fewer than three.
    pub fn of(samples: &[Usage]) -> Option<Self> {
        let third = samples.len() / 3;
        if third == 0 {
            return None;
        }
        Some(Self { first: median(&samples[..third]), last: median(&samples[samples.len() - third..]) })
    }

    /// Returns whether neither memory nor descriptors have grown by more than noise.
    pub fn is_flat(self) -> bool {
        let within = |first: u64, last: u64, noise: u64| last <= first + first / 10 + noise;
        within(self.first.memory, self.last.memory, MEMORY_NOISE)
            && within(self.first.descriptors, self.last.descriptors, DESCRIPTOR_NOISE)
    }
}

fn median(samples: &[Usage]) -> Usage {
    let middle = |value: fn(&Usage) -> u64| {
        let mut values: Vec<u64> = samples.iter().map(value).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    Usage { memory: middle(|usage| usage.memory), descriptors: middle(|usage| usage.descriptors) }
}

#[cfg(test)]
mod tests;
