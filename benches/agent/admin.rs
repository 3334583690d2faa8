//! Measures the latency of readiness requests while Envoy's admin port misbehaves.

use std::io::Result;
use std::time::Duration;

use kit::admin::{Mood, ScriptedAdmin};
use kit::report::{Row, quantile};
use kit::sidecar::{Builder, Sidecar};
use tokio::time::sleep;

use crate::caller::Caller;
use crate::{READY, millis};

/// Pause between two requests, so that the agent's background work is part of the measurement.
const PAUSE: Duration = Duration::from_millis(1);
/// Upper bound of the interval at which a ready agent polls the admin port.
const ASKS_AGAIN: Duration = Duration::from_millis(1500);

/// Measures p99 of the latency for an admin port that answers (the baseline) and for each kind of
/// misbehaviour.
pub(crate) async fn measure(questions: u32) -> Result<Vec<Row>> {
    let answers = worse("answers", (Mood::Starts, "workers not started"), Mood::Serves, questions).await?;
    let mut rows = vec![answers];
    for (words, mood) in [("hangs", Mood::Hangs), ("drips", Mood::Drips), ("sends 20 MB", Mood::Floods)] {
        let row = worse(words, (mood, "envoy admin not answering"), mood, questions).await?;
        rows.push(row.at_most(1.0));
    }
    Ok(rows)
}

/// Returns the higher p99 of two situations: before Envoy is ready for the first time, with
/// `before.1` as the expected reason, and after it.
async fn worse(words: &str, before: (Mood, &str), after: Mood, questions: u32) -> Result<Row> {
    let admin = ScriptedAdmin::start(before.0, String::new()).await;
    let sidecar = Builder::bare("b-admin").watching(admin.address).start_plain();
    sidecar.until(503, before.1).await;
    let starting = p99(&sidecar, 503, questions).await?;
    admin.set(Mood::Serves);
    sidecar.until(200, "ready").await;
    admin.set(after);
    sleep(ASKS_AGAIN).await;
    let ready = p99(&sidecar, 200, questions).await?;
    Ok(Row::new(format!("{READY} p99 while the admin port {words}"), starting.max(ready), "ms"))
}

async fn p99(sidecar: &Sidecar, status: u16, questions: u32) -> Result<f64> {
    let caller = Caller::new(sidecar.ready_address(), READY);
    let mut times = Vec::new();
    for _ in 0..questions {
        sleep(PAUSE).await;
        times.push(millis(caller.ask(status)?));
    }
    Ok(quantile(&times, 0.99))
}
