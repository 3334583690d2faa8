//! How the result of a probe is recorded in metrics and log.

use probe::Reason;
use probe::log_line::{LogLimiter, LogLine};

use crate::config::DeclaredProbe;
use crate::host::{Host, LogLevel};
use crate::metrics::{Metric, id};

/// Records results in metrics and log, within the limit of [`LogLimiter`]. Each worker has one.
#[derive(Debug, Default)]
pub struct Recorder {
    results: LogLimiter,
    /// The clients of refused calls are strangers, whose lines must not suppress those of results.
    refusals: LogLimiter,
}

impl Recorder {
    /// Records the result of a probe.
    pub fn record(&mut self, probe: &DeclaredProbe, reason: Reason, host: &mut impl Host) {
        let path = &probe.plan.path;
        let counter = Metric::ProbesTotal(path, reason);
        if let Some(id) = id(probe, Some(reason), counter, host) {
            host.increment(id, counter);
        }
        // A reason that any client can cause with a malformed request is not a result of the probe.
        if reason.is_client_error() {
            return;
        }
        let gauge = Metric::ProbeSuccess(path);
        if let Some(id) = id(probe, None, gauge, host) {
            host.set(id, gauge, u64::from(reason.is_success()));
        }
        let Some(line) = probe.stats.record(path, reason) else { return };
        log(&mut self.results, if line.warn { LogLevel::Warn } else { LogLevel::Info }, || line.text, host);
    }

    /// Records that a client may not call a hook.
    pub fn refuse_hook(&mut self, probe: &DeclaredProbe, client: &[u8], host: &mut impl Host) {
        self.record(probe, Reason::Forbidden, host);
        let path = &probe.plan.path;
        let client = String::from_utf8_lossy(client);
        log(&mut self.refusals, LogLevel::Warn, || LogLine::forbidden(path, &client), host);
    }
}

fn log(limiter: &mut LogLimiter, level: LogLevel, text: impl FnOnce() -> String, host: &mut impl Host) {
    let Some(suppressed) = limiter.check(host.now()) else { return };
    if suppressed > 0 {
        host.log(LogLevel::Warn, &LogLine::suppressed(suppressed));
    }
    host.log(level, &text());
}
