//! Whether the probe listener and the filter answer.

use std::time::Duration;

use crate::admin::DataPathResponse;
use address::RequestFailure;

/// Number of consecutive failures after which a data path that answered before is not met any more.
const DATA_PATH_FAILURES: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct DataPath {
    pub(super) met: bool,
    pub(super) accepted: bool,
    pub(super) unresponsive_since: Option<Duration>,
    failures: u32,
    /// Reason of the last failure; `None` if there was no response.
    reason: Option<String>,
}

impl DataPath {
    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Returns the reason if the condition is not met.
    pub(super) fn pending(&self) -> Option<String> {
        let reason = || self.reason.clone().unwrap_or_else(|| "probe listener not answering".to_owned());
        (!self.met).then(reason)
    }

    /// Status 429 counts as success once Envoy was ready, because it is caused by too many clients
    /// and not by Envoy's failure.
    pub(super) fn observe(
        &mut self,
        response: Result<DataPathResponse, RequestFailure>,
        was_ready: bool,
        now: Duration,
    ) {
        self.unresponsive_since = response.is_err().then(|| self.unresponsive_since.unwrap_or(now));
        self.reason = match response {
            Ok(DataPathResponse { status, unknown_probe })
                if status == 404 && unknown_probe || status == 429 && was_ready =>
            {
                self.failures = 0;
                self.met = true;
                return;
            }
            Ok(DataPathResponse { status: 404, .. }) => Some("probe filter not answering".to_owned()),
            Ok(DataPathResponse { status, .. }) => Some(format!("probe listener answers {status}")),
            Err(_) => None,
        };
        self.failures += 1;
        self.met &= self.failures < DATA_PATH_FAILURES;
    }
}
