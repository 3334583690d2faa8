//! Logs reviews. How much one source can write to the log is limited, because a client chooses the names
//! in a review, and how many it sends.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use injector::{PodOutcome, ProbeResult};
use pacing::source::Source;
use pacing::{RateLimiter, SourceLimits};
use tokio::time::Instant;
use tracing::info;

use crate::webhook::review::Reviewed;

/// The bytes of one source are not more than these in a minute, with as many at once: 64 KiB in any
/// minute.
const BYTES: u32 = 32 << 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Length of a line without the names of the Pod, and of one about suppressed lines before it, in bytes.
const LINE: usize = 320;
/// Longest name of an object in Kubernetes, in characters.
const NAME: usize = 253;

pub(super) struct ReviewLog {
    start: Instant,
    limits: Mutex<SourceLimits<Source>>,
    suppressed: AtomicU64,
}

impl Default for ReviewLog {
    fn default() -> Self {
        let rate = RateLimiter::new(MINUTE / BYTES, BYTES);
        let limits = Mutex::new(SourceLimits::new(u32::MAX, rate));
        Self { start: Instant::now(), limits, suppressed: AtomicU64::new(0) }
    }
}

impl ReviewLog {
    /// Writes a line about each Pod that was changed, or could not be changed as requested. Without a
    /// source there is no limit.
    pub(super) fn write(&self, reviewed: &Reviewed, source: Option<Source>) {
        let Reviewed { outcome, namespace, name, probes, warnings, .. } = reviewed;
        if matches!(outcome, PodOutcome::Skipped | PodOutcome::Unchanged) && warnings.is_empty() {
            return;
        }
        let (namespace, name) = (quoted(namespace), quoted(name));
        let codes: BTreeSet<&str> = warnings.iter().map(|warning| warning.code.word()).collect();
        let codes = Vec::from_iter(codes).join(",");
        if !self.is_within_limit(source, LINE + namespace.len() + name.len() + codes.len()) {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let suppressed = self.suppressed.swap(0, Ordering::Relaxed);
        if suppressed > 0 {
            info!(suppressed, "lines about reviews suppressed, the metrics count all reviews");
        }
        let count = |result| probes.iter().filter(|probe| probe.result == result).count();
        let (rewritten, unchanged) = (count(ProbeResult::Rewritten), count(ProbeResult::NotRewritten));
        info!(
            %namespace,
            %name,
            result = outcome.word(),
            rewritten,
            unchanged,
            warnings = codes,
            "pod reviewed"
        );
    }

    fn is_within_limit(&self, source: Option<Source>, bytes: usize) -> bool {
        let Some(source) = source else { return true };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let mut limits = self.limits.lock().expect("nothing panics while it holds this lock");
        limits.take_many(&source, bytes, self.start.elapsed()).is_ok()
    }
}

/// Returns the escaped text in quotes, at most as long as Kubernetes permits.
fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(NAME).collect::<String>())
}

#[cfg(test)]
mod tests;
