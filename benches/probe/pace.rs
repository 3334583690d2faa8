//! The pace of probes that the agent answers: it permits a client 200 new connections in a second, and closes
//! further ones. Rates of Envoys are raised in the bootstrap; the agent has no such setting.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::route::Route;

/// Probes in a block; short blocks make other load of the machine affect all routes alike.
pub(crate) const BLOCK: u32 = 100;
/// The time from one block to the next.
const PAUSE: Duration = Duration::from_millis(500);

/// The time of the next block through the agent.
pub(crate) struct Pace(Cell<Instant>);

impl Pace {
    pub(crate) fn new() -> Self {
        Self(Cell::new(Instant::now()))
    }

    /// Waits until a block may be sent through this route.
    pub(crate) async fn wait(&self, route: Route) {
        if route == Route::Agent {
            sleep_until(self.0.get()).await;
            self.0.set(Instant::now() + PAUSE);
        }
    }
}
