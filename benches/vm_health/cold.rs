//! Measures a start of the server with all entries in its store.

use std::time::Duration;

use kit::report::Row;
use kit::vm::fleet::{Crowd, NAMESPACE, Observer, cluster};
use tokio::time::Instant;

use crate::steady::bytes;
use crate::{Failure, millis, say};

/// Number of starts; the slowest one counts.
const STARTS: u32 = 5;
/// Limit for a client to receive all endpoints.
const PATIENCE: Duration = Duration::from_secs(30);

/// The agents are stopped first, so that their reconnections do not affect the start.
pub(crate) async fn measure(crowd: Crowd) -> Result<Vec<Row>, Failure> {
    say("cold start");
    let Crowd { mut discovery, fleet, observer, plan, .. } = crowd;
    discovery.kill().await;
    drop((fleet, observer));
    let (mut ready, mut served) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..STARTS {
        let begin = Instant::now();
        discovery.start().await?;
        ready = ready.max(begin.elapsed());
        let client =
            Observer::start(discovery.plaintext(), NAMESPACE, (0..plan.services).map(cluster).collect());
        let all = client.until(PATIENCE, |sets| sets.total() == plan.agents as usize).await;
        let Some(all) = all else {
            return Err(format!("{} of {} entries after a start", client.sets().total(), plan.agents).into());
        };
        served = served.max(all - begin);
        discovery.kill().await;
    }
    let store = std::fs::metadata(discovery.store())?.len();
    let entries = plan.agents;
    Ok(vec![
        Row::new(
            format!("cold start with {entries} entries, ready, slowest of {STARTS}"),
            millis(ready),
            "ms",
        )
        .at_most(2000.0),
        Row::new("cold start, a client has all endpoints, slowest", millis(served), "ms"),
        Row::new(format!("store file with {entries} entries"), bytes(store) / 1_048_576.0, "MiB")
            .at_most(64.0),
    ])
}
