//! Stand-in.
use probe::{HealthReason, State};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "stand-in")]
pub struct HealthNow {
    pub state: State,
    pub reason: HealthReason,
    pub message: String,
    pub generation: u64,
    pub since: Instant,
    pub last_probe: Option<Instant>,
    pub probe: Option<Arc<Value>>,
    pub interval: Option<Duration>,
    pub verdict_due: Option<Instant>,
}
/// Stand-in.
#[derive(Debug, Clone)]
pub struct Health(watch::Receiver<HealthNow>);
impl Health {
    /// a
    pub fn subscribe(&self) -> watch::Receiver<HealthNow> {
        self.0.clone()
    }
    /// b
    pub async fn push(&self, _probe: Option<Value>) -> Result<(), String> {
        Ok(())
    }
}
