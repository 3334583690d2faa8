//! Sequences of observations and the state that follows from them.

mod after_ready;
mod child;
mod random;
mod silence;
mod stages;

use super::*;
use crate::admin::{DataPathResponse, ReadinessStats, ServerState, UpdateCounters};

const POLICY: Policy =
    Policy { dynamic: Dynamic::Auto, data_path: true, child: false, drain_keeps_ready: false };
const CHILD: Policy = Policy { child: true, ..POLICY };
const PROBED: DataPathResponse = DataPathResponse { status: 404, unknown_probe: true };

fn ready(state: ServerState) -> Observation {
    Observation::Admin(Ok(AdminResponse::State(state)))
}

fn stats(
    clusters: Option<(u64, u64)>,
    listeners: Option<(u64, u64)>,
    workers_started: Option<u64>,
) -> Observation {
    let updates = |pair: Option<(u64, u64)>| UpdateCounters {
        success: pair.map(|(success, _)| success),
        rejected: pair.map(|(_, rejected)| rejected),
    };
    let stats =
        ReadinessStats { clusters: updates(clusters), listeners: updates(listeners), workers_started };
    Observation::Admin(Ok(AdminResponse::Stats(stats)))
}

fn server_info(state: ServerState, uptime: i64) -> Observation {
    let info = ServerInfo { version: Some("1.40.0".to_owned()), state, uptime };
    Observation::Admin(Ok(AdminResponse::ServerInfo(info)))
}

fn data_path(status: u16, unknown_probe: bool) -> Observation {
    Observation::DataPath(Ok(DataPathResponse { status, unknown_probe }))
}

/// Applies observations that are one second apart.
fn after(policy: Policy, observations: &[Observation]) -> Readiness {
    let mut model = Readiness::new(policy, Duration::ZERO);
    for (second, observation) in (1..).zip(observations) {
        model.observe(model.generation(), observation.clone(), Duration::from_secs(second));
    }
    model
}

fn to_ready() -> Vec<Observation> {
    vec![
        Observation::Accepted(Channel::Admin),
        ready(ServerState::Live),
        stats(None, None, Some(1)),
        Observation::Accepted(Channel::DataPath),
        Observation::DataPath(Ok(PROBED)),
    ]
}

fn check(what: &str, policy: Policy, observations: &[Observation], body: &str) {
    let model = after(policy, observations);
    assert_eq!(String::from_utf8_lossy(&model.snapshot().body), body, "{what}");
}
