//! Measures a start of the server with all entries in its store.

use std::time::Duration;

use kit::quiet_rounds::QuietRounds;
use kit::report::Row;
use kit::vm::discovery::Discovery;
use kit::vm::fleet::{EdsClient, FleetSettings, LoadTest, NAMESPACE, cluster};
use tokio::time::Instant;

use crate::steady::bytes;
use crate::{Failure, millis, say};

/// Number of starts; the slowest one counts.
const STARTS: u32 = 5;
/// Limit for a client to receive all endpoints.
const PATIENCE: Duration = Duration::from_secs(30);

/// The agents are stopped first, so that their reconnections do not affect the start.
pub(crate) async fn measure(quiet: &mut QuietRounds, load: LoadTest) -> Result<Vec<Row>, Failure> {
    say("cold start");
    let LoadTest { mut discovery, fleet, eds_client, settings, .. } = load;
    discovery.kill().await;
    drop((fleet, eds_client));
    let (mut ready, mut served) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..STARTS {
        let start = quiet.round(async || start(&mut discovery, &settings).await).await?;
        (ready, served) = (ready.max(start.0), served.max(start.1));
    }
    let store = std::fs::metadata(discovery.store())?.len();
    let entries = settings.agents;
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

/// Starts the server and stops it again. Returns the time until it is ready, and until a client has all
/// endpoints.
async fn start(discovery: &mut Discovery, settings: &FleetSettings) -> Result<(Duration, Duration), Failure> {
    let begin = Instant::now();
    discovery.start().await?;
    let ready = begin.elapsed();
    let client =
        EdsClient::start(discovery.plaintext(), NAMESPACE, (0..settings.services).map(cluster).collect());
    let all = client.until(PATIENCE, |sets| sets.total() == settings.agents as usize).await;
    let Some(all) = all else {
        return Err(format!("{} of {} entries after a start", client.state().total(), settings.agents).into());
    };
    discovery.kill().await;
    Ok((ready, all - begin))
}
