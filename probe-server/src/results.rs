//! Records the results of probes in metrics and log.

use std::sync::{Mutex, MutexGuard};

use probe::log_line::{LogLimiter, LogLine};
use probe::{ProbePath, Reason};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::declared::DeclaredProbe;
use crate::probe_metrics::ProbeMetrics;

#[derive(Debug)]
pub(crate) struct Results {
    metrics: ProbeMetrics,
    start: Instant,
    changes: Mutex<LogLimiter>,
    /// The clients of refused calls are strangers, whose lines must not suppress those of results.
    refusals: Mutex<LogLimiter>,
}

impl Results {
    /// Sets the metrics of each probe to kubelet's initial result.
    pub(crate) fn new<'a>(metrics: ProbeMetrics, paths: impl Iterator<Item = &'a ProbePath>) -> Self {
        paths.for_each(|path| metrics.declare(path));
        Self { metrics, start: Instant::now(), changes: Mutex::default(), refusals: Mutex::default() }
    }

    pub(crate) fn record(&self, probe: &DeclaredProbe, reason: Reason) {
        self.metrics.count(&probe.path, reason);
        // A reason that any client can cause with a malformed request is not a result of the probe.
        if reason.is_client_error() {
            return;
        }
        self.metrics.set(&probe.path, reason.is_success());
        let before = lock(&probe.last).replace(reason);
        let Some(line) = LogLine::of_change(&probe.path, before, reason) else { return };
        self.log(&self.changes, |suppressed| {
            if suppressed > 0 {
                warn!("{}", LogLine::suppressed(suppressed));
            }
            if line.warn {
                warn!("{}", line.text);
            } else {
                info!("{}", line.text);
            }
        });
    }

    /// Records that a client may not call a hook.
    pub(crate) fn refuse_hook(&self, probe: &DeclaredProbe, client: &str) {
        self.record(probe, Reason::Forbidden);
        self.log(&self.refusals, |suppressed| {
            if suppressed > 0 {
                warn!("{}", LogLine::suppressed(suppressed));
            }
            warn!("{}", LogLine::forbidden(&probe.path, client));
        });
    }

    pub(crate) fn unknown_probe(&self) {
        self.metrics.unknown_probe();
    }

    fn log(&self, limiter: &Mutex<LogLimiter>, log: impl FnOnce(u64)) {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let admitted = lock(limiter).check(now);
        if let Some(suppressed) = admitted {
            log(suppressed);
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds this lock")
}
