//! Whether Envoy must be restarted.

use std::time::Duration;

use super::Readiness;

/// Time after which a silent data path that answered before is not expected to recover without a
/// restart (istio#50550).
const STUCK_AFTER: Duration = Duration::from_secs(60);

impl Readiness {
    /// Returns the reason if Envoy must be restarted. `admin` is the time for which its admin
    /// interface may be silent.
    pub fn alive(&self, admin: Option<Duration>, now: Duration) -> Result<(), &'static str> {
        let since = |since: Option<Duration>| since.map(|since| now.saturating_sub(since));
        if self.envoy.exited && !self.envoy.restarting {
            Err("envoy exited")
        } else if since(self.envoy.admin_unresponsive_since)
            .zip(admin)
            .is_some_and(|(silent, most)| silent >= most)
        {
            Err("envoy admin stuck")
        } else if self.envoy.was_ready
            && since(self.envoy.data_path.unresponsive_since).is_some_and(|silent| silent >= STUCK_AFTER)
        {
            Err("probe listener not answering")
        } else {
            Ok(())
        }
    }
}
