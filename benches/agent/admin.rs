//! Measures the latency of readiness requests while Envoy's admin port misbehaves, compared with an
//! answer from memory.

use std::io::Result;
use std::net::SocketAddr;
use std::time::Duration;

use kit::admin::{Mood, ScriptedAdmin};
use kit::app::counted::{CountedApp, Habit};
use kit::net;
use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, median_ratio, quantile};
use kit::sidecar::Builder;
use tokio::time::sleep;

use crate::caller::Caller;
use crate::{READY, millis};

/// Pause between two requests, so that the agent's background work is part of the measurement.
const PAUSE: Duration = Duration::from_millis(1);
/// Upper bound of the interval at which a ready agent polls the admin port.
const ASKS_AGAIN: Duration = Duration::from_millis(1500);
/// How much later than an answer from memory readiness may be answered, in milliseconds.
const BAR: f64 = 1.0;

/// What the admin port does, before Envoy is ready for the first time and after it.
struct Situation {
    name: &'static str,
    starting: Mood,
    /// The reason that the agent gives before Envoy is ready.
    reason: &'static str,
    ready: Mood,
}

impl Situation {
    const fn same(name: &'static str, mood: Mood) -> Self {
        Self { name, starting: mood, reason: "envoy admin not answering", ready: mood }
    }
}

const SITUATIONS: [Situation; 4] = [
    Situation { name: "answers", starting: Mood::Starts, reason: "workers not started", ready: Mood::Serves },
    Situation::same("hangs", Mood::Hangs),
    Situation::same("drips", Mood::Drips),
    Situation::same("sends 20 MB", Mood::Floods),
];

/// p99 of a round, in milliseconds.
struct Latency {
    readiness: f64,
    /// Of an answer from memory, in turn with readiness.
    memory: f64,
}

/// Measures each situation in each round.
pub(crate) async fn measure(quiet: &mut QuietRounds, rounds: u32, questions: u32) -> Result<Vec<Row>> {
    let mut latencies: Vec<Vec<Latency>> = SITUATIONS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (situation, latencies) in SITUATIONS.iter().zip(&mut latencies) {
            latencies.push(quiet.round(async || round(situation, questions).await).await?);
        }
    }
    let named = SITUATIONS.iter().map(|situation| situation.name).zip(&latencies);
    Ok(named.flat_map(|(name, latencies)| rows(name, latencies)).collect())
}

fn rows(situation: &str, latencies: &[Latency]) -> [Row; 4] {
    let column = |pick: fn(&Latency) -> f64| -> Vec<f64> { latencies.iter().map(pick).collect() };
    let (readiness, memory) = (column(|latency| latency.readiness), column(|latency| latency.memory));
    let above = median(&column(|latency| latency.readiness - latency.memory));
    let when = format!("p99 while the admin port {situation}");
    [
        Row::new(format!("answer from memory, {when}"), median(&memory), "ms"),
        Row::new(format!("{READY}, {when}"), median(&readiness), "ms"),
        Row::new(format!("{READY} / answer from memory, {when}"), median_ratio(&readiness, &memory), "ratio"),
        Row::new(format!("{READY} above answer from memory, {when}"), above, "ms").at_most(BAR),
    ]
}

/// Returns the higher latency of the two states of Envoy.
async fn round(situation: &Situation, questions: u32) -> Result<Latency> {
    let memory = CountedApp::start(net::loopback(), Habit::status(200));
    let admin = ScriptedAdmin::start(situation.starting, String::new()).await;
    let sidecar = Builder::bare("b-admin").watching(admin.address).start_plain();
    let servers = [sidecar.ready_address(), memory.address];
    sidecar.until(503, situation.reason).await;
    let starting = latency(servers, 503, questions).await?;
    admin.set(Mood::Serves);
    sidecar.until(200, "ready").await;
    admin.set(situation.ready);
    sleep(ASKS_AGAIN).await;
    let ready = latency(servers, 200, questions).await?;
    Ok(if starting.readiness > ready.readiness { starting } else { ready })
}

async fn latency(servers: [SocketAddr; 2], status: u16, questions: u32) -> Result<Latency> {
    let [readiness, memory] = servers.map(|server| Caller::new(server, READY));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..questions {
        sleep(PAUSE).await;
        times[0].push(millis(readiness.ask(status)?));
        sleep(PAUSE).await;
        times[1].push(millis(memory.ask(200)?));
    }
    let [readiness, memory] = times.map(|times| quantile(&times, 0.99));
    Ok(Latency { readiness, memory })
}
