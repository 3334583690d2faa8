//! Applies the faults of a plan.

use std::time::Duration;

use workload_health::Report;
use workload_health::Shutdown as HealthEnd;
use xds_proxy::Input;

use super::{Event, LossReason, World};
use crate::injected_bug::InjectedBug;
use crate::network::{End, Packet};
use crate::plan::{BulkEnd, Edit, Fault, Kind};

/// Longest time until the configuration is read again, in milliseconds.
const POLL: u64 = 2_000;

impl World {
    pub(super) fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Application { host, healthy } => self.hosts[host].healthy = Some(healthy),
            Fault::Flapping { host } => self.hosts[host].healthy = None,
            Fault::Cut { machine } => self.cut(machine),
            Fault::HalfOpen { machine, up, down } => self.half_open(machine, up, down),
            Fault::Partition { host, lasts } => self.partition(host, lasts),
            Fault::Freeze { host, lasts } => self.freeze(host, lasts),
            Fault::Kill { machine, silently } => self.end_machine(machine, silently),
            Fault::Stop { machine } => self.stop_machine(machine, BulkEnd::Stop),
            Fault::Drain { machine } => self.end_health(machine, HealthEnd::Draining),
            Fault::Start { machine } => self.start_machine(machine),
            Fault::Restart { replica, down, empty, silently } => {
                self.end_server(replica, empty, silently);
                self.at(self.now + down, Event::StartServer(replica));
            }
            Fault::Replace { replica, down } => {
                self.release_lease(replica);
                self.end_server(replica, false, false);
                self.instances[replica] = format!("d-{replica}-{}", self.runs);
                self.at(self.now + down, Event::StartServer(replica));
            }
            Fault::Isolate { replica, lasts } => self.isolate(replica, lasts),
            Fault::Together { group, end } => self.bulk_fault(group, end),
            Fault::DiskFull { lasts } => self.disk_full_until = self.now + lasts,
            Fault::WallClock { seconds } => self.wall_offset += seconds,
            Fault::Configure(edit) => {
                self.configuration.edit(&edit);
                if self.plan.replicas > 1
                    && let Edit::Entry { host, .. } = edit
                {
                    return self.edit_manual_entry(host);
                }
                for replica in 0..self.servers.len() {
                    let at = self.now + self.random.millis(0, POLL);
                    self.at(at, Event::ReadConfiguration(replica));
                }
            }
            Fault::Replay { machine } => self.replay(machine),
            Fault::Certificates { machine } => self.step_machine(machine, Input::FilesChanged),
        }
    }

    /// Ends an agent with a signal.
    pub(super) fn stop_machine(&mut self, machine: usize, end: BulkEnd) {
        if self.processes.get(machine).is_none_or(Option::is_none) {
            return;
        }
        let down = match end {
            BulkEnd::Restart(down) | BulkEnd::StopAndStart(down) => Some(down),
            BulkEnd::Stop => None,
        };
        if matches!(end, BulkEnd::Restart(_)) || self.injected_bug == Some(InjectedBug::NoFinalReport) {
            self.end_machine(machine, false);
            return down.into_iter().for_each(|down| self.at(self.now + down, Event::StartMachine(machine)));
        }
        self.restarting.extend(down.map(|down| (machine, down)));
        self.step_machine(machine, Input::Terminating);
        self.end_health(machine, HealthEnd::Terminating);
    }

    fn end_health(&mut self, machine: usize, end: HealthEnd) {
        let now = self.now;
        // An Istio agent sends no final report, and an Envoy has no health.
        if self.plan.machines.get(machine).is_none_or(|machine| machine.kind != Kind::AppHealth) {
            return;
        }
        let Some(process) = &mut self.processes[machine] else { return };
        if process.health.shut_down(end).is_some() {
            process.flipped(now);
            self.send_status(machine);
        }
    }

    fn cut(&mut self, machine: usize) {
        let Some(stream) = self.stream_of(machine) else { return };
        if let Some(connection) = self.network.get(stream) {
            connection.up.dead = true;
            connection.down.dead = true;
        }
        for end in [End::Machine, End::Server] {
            let at = self.now + self.latency();
            self.at(at, Event::LossDetected(stream, end, LossReason::Gone));
        }
    }

    fn half_open(&mut self, machine: usize, up: bool, down: bool) {
        let Some(stream) = self.stream_of(machine) else { return };
        if let Some(connection) = self.network.get(stream) {
            connection.up.dead |= up;
            connection.down.dead |= down;
        }
        self.unanswered(stream, LossReason::Gone, &[End::Machine, End::Server]);
    }

    fn partition(&mut self, host: usize, lasts: Duration) {
        if self.is_cut_off(host) {
            return;
        }
        self.hosts[host].partition = (self.now, self.now + lasts);
        for stream in self.streams_of(host) {
            let reason = LossReason::Unanswered { host, since: self.now };
            self.unanswered(stream, reason, &[End::Machine, End::Server]);
        }
    }

    fn freeze(&mut self, host: usize, lasts: Duration) {
        if self.is_frozen(host) {
            return;
        }
        self.hosts[host].frozen = (self.now, self.now + lasts);
        for stream in self.streams_of(host) {
            self.unanswered(stream, LossReason::Unanswered { host, since: self.now }, &[End::Server]);
        }
    }

    fn stream_of(&self, index: usize) -> Option<u64> {
        match index.checked_sub(self.processes.len()) {
            Some(envoy) => self.clients[envoy].stream,
            None => self.processes[index].as_ref()?.stream,
        }
    }

    fn streams_of(&self, host: usize) -> Vec<u64> {
        self.network.of(|connection| self.plan.host(connection.machine) == host)
    }

    /// Delivers an old report again after newer ones on the same stream.
    fn replay(&mut self, machine: usize) {
        let Some(stream) = self.stream_of(machine) else { return };
        if machine >= self.processes.len() {
            return;
        }
        let said = self.invariants.reports_of(machine);
        if said.is_empty() || !self.invariants.has_received_report(stream) {
            return;
        }
        let report = said[self.random.below(said.len())].clone();
        self.trace(|| format!("machine {machine}: replayed {report:?}"));
        self.send(stream, End::Server, Packet::Report(Report::AppHealth(report)));
    }
}
