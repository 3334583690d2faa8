//! Plans in which many agents restart or stop at once.

use std::time::Duration;

use super::{BulkEnd, Fault, GROUPS, Kind, MachinePlan, Plan, ProbePlan, probe, settings};
use crate::random::Random;
use discovery::entries::Settings;
use discovery::message::Variant;
use discovery::objects::LastEndpoint;

/// Time after which a healthy machine is an endpoint in every Envoy, and after which the effects of a fault
/// are over.
const SETTLED: Duration = Duration::from_secs(75);

const GRACE: Duration = Duration::from_secs(10);

/// Adds such faults to other ones.
pub(super) fn add(plan: &mut Plan, random: &mut Random) {
    let span = u64::try_from(plan.until.as_millis()).expect("minutes");
    for _ in 0..1 + random.below(3) {
        let at = random.millis(0, span);
        let group = random.below(GROUPS.len());
        let down = random.millis(0, 1_000);
        let end = random.pick(&[BulkEnd::Restart(down), BulkEnd::StopAndStart(down), BulkEnd::Stop]);
        plan.faults.push((at, Fault::Together { group, end }));
    }
    plan.faults.sort_by_key(|(at, _)| *at);
}

/// Returns a probe that runs seldom, because its results never change.
fn slow_probe(random: &mut Random) -> ProbePlan {
    let probe = probe(random);
    ProbePlan { period: probe.period.max(5), ..probe }
}

/// Generates a plan without other faults: the healthy machines of one group restart together twice, and
/// then stop.
pub(super) fn plan(seed: u64) -> Plan {
    let mut random = Random::new(seed);
    let machines: Vec<MachinePlan> = (0..3 + random.below(6))
        .map(|host| MachinePlan {
            kind: Kind::AppHealth,
            host,
            group: Some(0),
            file: random.chance(0.5).then(|| slow_probe(&mut random)),
            healthy: true,
            starts: random.millis(0, 20_000),
        })
        .collect();
    let starts = machines.iter().enumerate();
    let mut faults: Vec<(Duration, Fault)> =
        starts.map(|(machine, plan)| (plan.starts, Fault::Start { machine })).collect();
    faults.sort_by_key(|(at, _)| *at);
    let down = [random.millis(0, 1_000), random.millis(0, 1_000)];
    let ends = [BulkEnd::Restart(down[0]), BulkEnd::StopAndStart(down[1]), BulkEnd::Stop];
    faults.extend((1..).zip(ends).map(|(time, end)| (SETTLED * time, Fault::Together { group: 0, end })));
    Plan {
        seed,
        // With a shorter one, the endpoint of an agent is removed before it can return.
        settings: Settings { disconnect_grace: GRACE, ..settings(&mut random) },
        replicas: 1,
        is_bulk: true,
        last_endpoint: LastEndpoint::Remove,
        machines,
        groups: vec![Some(slow_probe(&mut random)), None],
        envoys: vec![(random.pick(&[Variant::Sotw, Variant::Delta]), false)],
        latency: random.pick(&[(0, 2), (1, 50), (1, 500), (5, 3000)]),
        disk: random.pick(&[(0, 20), (1, 20), (10, 500), (1, 3000)]),
        faults,
        until: SETTLED * 3 + GRACE * 2,
        rest: SETTLED,
    }
}
