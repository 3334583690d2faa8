//! Restarts and stops of many agents at once, and their effect on the endpoints of Envoys.

use std::time::Duration;

use super::{Event, World};
use crate::configuration;
use crate::plan::{BulkEnd, GROUPS, Kind};

/// The agents shut down within this time, in milliseconds.
const WITHIN: u64 = 1_000;
/// Time after which each machine is an endpoint again, or is none any more.
const SETTLED: Duration = Duration::from_secs(60);
/// As many machines are always removed.
const FEW: usize = 2;

/// The effect of one restart or stop on the first Envoy.
#[derive(Debug)]
pub(crate) struct BulkFault {
    end: BulkEnd,
    cluster: String,
    started: Duration,
    /// The number of endpoints before.
    before: usize,
    /// When the number of endpoints last changed.
    last_change: Duration,
    now: usize,
    is_settled: bool,
}

impl World {
    pub(super) fn bulk_fault(&mut self, group: usize, end: BulkEnd) {
        for machine in 0..self.processes.len() {
            let plan = &self.plan.machines[machine];
            if plan.group == Some(group) && matches!(plan.kind, Kind::AppHealth | Kind::Istio) {
                let at = self.now + self.random.millis(0, WITHIN);
                self.at(at, Event::StopMachine { machine, end });
            }
        }
        if !self.plan.is_bulk {
            return;
        }
        let cluster = configuration::cluster(GROUPS[group]);
        let before = self.clients[0].envoy.endpoints.get(&cluster).map_or(0, |endpoints| endpoints.len());
        if before != self.plan.machines.len() {
            let text = format!("{before} of {} machines are endpoints", self.plan.machines.len());
            self.invariants.violation(|| text);
        }
        self.bulk_fault = Some(BulkFault {
            end,
            cluster,
            started: self.now,
            before,
            last_change: self.now,
            now: before,
            is_settled: false,
        });
        self.at(self.now + SETTLED, Event::BulkFaultSettled);
    }

    /// Looks at the endpoints of the first Envoy.
    pub(super) fn endpoints_changed(&mut self) {
        let Some(fault) = self.bulk_fault.as_mut().filter(|fault| !fault.is_settled) else { return };
        let endpoints = self.clients[0].envoy.endpoints.get(&fault.cluster);
        let now = endpoints.map_or(0, |endpoints| endpoints.len());
        if now != fault.now {
            (fault.now, fault.last_change) = (now, self.now);
        }
        // The first ones that terminate are removed, because it is not known yet that there are many.
        let limit = fault.before * usize::from(self.plan.settings.max_silent_percent) / 100;
        // On a slow network some agents return after the grace period.
        let is_slow = Duration::from_millis(self.plan.latency.1) * 6 > self.plan.settings.disconnect_grace;
        let removed_at_most = match fault.end {
            BulkEnd::Restart(_) if !is_slow => 0,
            BulkEnd::Restart(_) | BulkEnd::StopAndStart(_) => limit.max(FEW),
            BulkEnd::Stop => return,
        };
        if now + removed_at_most < fault.before {
            let text = format!("{now} of {} endpoints after {:?}", fault.before, fault.end);
            self.invariants.violation(|| text);
        }
    }

    /// Checks the number of endpoints when the effects of the fault are over.
    pub(super) fn bulk_fault_settled(&mut self) {
        let latency = Duration::from_millis(self.plan.latency.1);
        let Some(fault) = self.bulk_fault.as_mut() else { return };
        fault.is_settled = true;
        let expected = if fault.end == BulkEnd::Stop { 0 } else { fault.before };
        if fault.now != expected {
            let text = format!("{} endpoints, not {expected}, after {:?}", fault.now, fault.end);
            return self.invariants.violation(|| text);
        }
        // Self-preservation ends with the grace period after the end of the stream: one way to the server, the
        // acknowledgement when it is stored, one way to the Envoy, and the debounce.
        let took = fault.last_change - fault.started;
        let grace = self.plan.settings.disconnect_grace;
        let stored = Duration::from_millis(self.plan.disk.1) * 2;
        let at_most = Duration::from_millis(WITHIN + 3_000) + latency * 4 + stored + grace;
        if fault.end == BulkEnd::Stop && took > at_most {
            let text = format!("agents that stop cleanly are endpoints for {took:?}");
            self.invariants.violation(|| text);
        }
    }
}
