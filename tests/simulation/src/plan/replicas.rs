//! Plans with several servers.

use std::time::Duration;

use super::{Fault, Kind, Plan};
use crate::random::Random;

/// A Lease is valid for 30 s, and a heartbeat with jitter follows.
const TAKEOVER: Duration = Duration::from_secs(90);

/// Gives the plan more servers, and their faults.
pub(super) fn add(plan: &mut Plan, random: &mut Random) {
    plan.replicas = 2 + random.below(2);
    plan.rest += TAKEOVER;
    // A server detects within 7 s that it cannot reach the API server: it reads the Leases every 3 s, with
    // a deadline of 4 s. Until then it may not know that an agent has moved to another server.
    plan.settings.disconnect_grace = Duration::from_secs(10);
    // A hostile peer would have to be modelled in all servers.
    plan.machines.iter_mut().filter(|machine| machine.kind == Kind::Hostile).for_each(|machine| {
        machine.kind = Kind::Companion;
    });
    if plan.is_bulk {
        return;
    }
    for (_, fault) in &mut plan.faults {
        if let Fault::Restart { replica, empty, .. } = fault {
            *replica = random.below(plan.replicas);
            // The store is that of the API server.
            *empty = false;
        }
    }
    let span = u64::try_from(plan.until.as_millis()).expect("minutes");
    for _ in 0..random.below(5) {
        let at = random.millis(0, span);
        let replica = random.below(plan.replicas);
        let lasts = random.pick(&[2_000, 20_000, 90_000]);
        let lasts = Duration::from_millis(random.number() % lasts).min(plan.until - at);
        let fault = if random.chance(0.5) {
            Fault::Isolate { replica, lasts }
        } else {
            Fault::Replace { replica, down: lasts }
        };
        plan.faults.push((at, fault));
    }
    plan.faults.sort_by_key(|(at, _)| *at);
}
