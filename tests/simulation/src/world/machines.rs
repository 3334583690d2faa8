//! The machines: agents probe, connect, report and process responses.

use std::time::Duration;

use bytes::Bytes;
use discovery::entries::{Node, StreamId};
use discovery::message::{ResourceSubscription, TypeUrl};
use discovery::wire;
use workload_health::{HealthReason, Outcome, Report, WorkloadProbe};
use xds::json::encode_struct;
use xds::{ResourceRef, ResponseHead, Variant, any, type_url};
use xds_proxy::{Effect, HealthEvent, Input};

use super::{Event, LossReason, World};
use crate::configuration::{NAMESPACE, address};
use crate::injected_bug::InjectedBug;
use crate::network::{End, Packet};
use crate::plan::{GROUPS, Kind};
use crate::process::Process;

/// Duration of a connection attempt without a response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

impl World {
    /// Returns when the next machine is due.
    pub(super) fn next_machine(&self) -> Option<Duration> {
        (0..self.processes.len()).filter_map(|machine| self.next_of(machine)).min()
    }

    pub(super) fn next_of(&self, machine: usize) -> Option<Duration> {
        let process = self.processes[machine].as_ref()?;
        let due = [process.next_due(), process.next_probe].into_iter().flatten().min()?;
        Some(due.max(self.hosts[self.plan.machines[machine].host].frozen.1))
    }

    pub(super) fn tick_machine(&mut self, machine: usize) {
        let Some(process) = &self.processes[machine] else { return };
        if process.next_probe.is_some_and(|due| due <= self.now) {
            self.probe(machine);
        } else {
            self.step_machine(machine, Input::Tick);
        }
    }

    fn probe(&mut self, machine: usize) {
        let healthy = self.hosts[self.plan.machines[machine].host].healthy;
        let healthy = healthy.unwrap_or_else(|| self.random.chance(0.5));
        let outcome = if healthy {
            Outcome::Healthy
        } else {
            Outcome::unhealthy(HealthReason::HttpStatus, "HTTP status 503")
        };
        let Some(process) = &mut self.processes[machine] else { return };
        process.probed(self.now, outcome);
        self.send_status(machine);
    }

    /// Passes the current state to the client.
    pub(super) fn send_status(&mut self, machine: usize) {
        let Some(process) = &self.processes[machine] else { return };
        let level = process.level();
        self.step_machine(machine, Input::Health(level));
    }

    pub(super) fn start_machine(&mut self, machine: usize) {
        if self.processes.get(machine).is_none_or(Option::is_some) {
            return;
        }
        self.runs += 1;
        let process = Process::new(&self.plan.machines[machine], self.runs, self.now);
        self.trace(|| format!("machine {machine}: run {} starts", process.run));
        self.processes[machine] = Some(process);
    }

    /// Ends the process. Its kernel closes the connections, unless `silently`.
    pub(super) fn end_machine(&mut self, machine: usize, silently: bool) {
        if let Some(envoy) = machine.checked_sub(self.processes.len()) {
            return self.restart_envoy(envoy);
        }
        self.restarting.remove(&machine);
        let Some(process) = self.processes[machine].take() else { return };
        let Some(stream) = process.stream else { return };
        if silently {
            if let Some(connection) = self.network.get(stream) {
                connection.up.dead = true;
                connection.down.dead = true;
            }
            self.unanswered(stream, LossReason::Gone, &[End::Server]);
        } else {
            self.send(stream, End::Server, Packet::Fin);
        }
        self.network.close(stream, End::Machine);
    }

    pub(super) fn step_machine(&mut self, machine: usize, input: Input) {
        let Some(process) = self.processes.get_mut(machine).and_then(Option::as_mut) else { return };
        let is_flip = matches!(&input, Input::Health(_));
        let random = &mut self.random;
        let text = self.trace.is_some().then(|| format!("{input:?}"));
        let effects = process.step(self.now, input, &mut || random.unit());
        self.invariants.machine_stepped(effects.len());
        if let Some(text) = text.filter(|_| !effects.is_empty() || !is_flip) {
            self.trace(|| format!("machine {machine}: {text}"));
        }
        for effect in effects {
            self.trace(|| format!("machine {machine}:   -> {effect:?}"));
            self.apply_of_machine(machine, effect);
        }
    }

    fn apply_of_machine(&mut self, machine: usize, effect: Effect) {
        let Some(process) = &mut self.processes[machine] else { return };
        let Process { run, stream, .. } = *process;
        match effect {
            Effect::Connect => self.dial(machine, run),
            Effect::SendUpstream(message) => self.send_request(machine, message),
            Effect::Health(HealthEvent::ValidateProbe { hello, probe }) => {
                let input = Input::ProbeValidated { hello, result: Ok(()) };
                let at = self.now + self.random.millis(0, 100);
                self.at(at, Event::ProbeValidated { machine, run, input: Box::new(input), probe });
            }
            Effect::CloseUpstream | Effect::AbortUpstream(_) => {
                process.stream = None;
                if let Some(stream) = stream {
                    self.send(stream, End::Server, Packet::Fin);
                    self.network.close(stream, End::Machine);
                }
            }
            Effect::HalfCloseUpstream => {
                if let Some(stream) = stream {
                    self.send(stream, End::Server, Packet::Fin);
                }
            }
            Effect::Health(HealthEvent::Done) => {
                let down = self.restarting.remove(&machine);
                self.end_machine(machine, false);
                if let Some(down) = down {
                    self.at(self.now + down, Event::StartMachine(machine));
                }
            }
            _ => {}
        }
    }

    /// Decodes a request as the server does, and sends it.
    fn send_request(&mut self, machine: usize, message: Bytes) {
        let request = wire::decode(message, Variant::Sotw).expect("a request of the agent");
        let Some(Process { stream, first_stream, .. }) = &self.processes[machine] else { return };
        let (stream, is_first) = (*stream, stream == first_stream);
        let packet = match (request.report, request.type_url, request.subscription) {
            (Some(report), ..) => {
                self.invariants.sent(machine, &report);
                if self.injected_bug == Some(InjectedBug::SilentAfterReconnect) && !is_first {
                    return;
                }
                Packet::Report(report)
            }
            (None, TypeUrl::Probe, ResourceSubscription::Sotw { version, .. }) => {
                Packet::Answer { version, refusal: request.error }
            }
            _ => Packet::First(Box::new(self.node(machine))),
        };
        if let Some(stream) = stream {
            self.send(stream, End::Server, packet);
        }
    }

    fn dial(&mut self, machine: usize, run: u64) {
        let host = self.plan.machines[machine].host;
        let reached = self.servers.iter().any(Option::is_some) && !self.is_cut_off(host);
        let takes = if self.is_cut_off(host) {
            self.random.millis(1, 5000).max(CONNECT_TIMEOUT)
        } else {
            self.latency() + self.latency()
        };
        self.at(self.now + takes, Event::ConnectEnded { machine, run, reached });
    }

    pub(super) fn connect_ended(&mut self, machine: usize, run: u64, reached: bool) {
        let host = self.plan.machines[machine].host;
        let is_current = self.processes[machine].as_ref().is_some_and(|process| process.run == run);
        if !is_current {
            return;
        }
        if self.is_frozen(host) {
            let at = self.hosts[host].frozen.1 + Duration::from_millis(1);
            return self.at(at, Event::ConnectEnded { machine, run, reached });
        }
        let is_reached = reached && !self.is_cut_off(host);
        let Some(server) = is_reached.then(|| self.pick_server()).flatten() else {
            return self.step_machine(machine, closed(false));
        };
        let stream = self.network.open(machine, run, server);
        if let Some(process) = &mut self.processes[machine] {
            process.stream = Some(stream);
            process.first_stream.get_or_insert(stream);
        }
        self.trace(|| format!("machine {machine}: stream {stream} to run {server} of the server"));
        let node = Box::new(xds::Node { id: "machine".to_owned(), ..xds::Node::default() });
        self.step_machine(machine, Input::UpstreamOpened { node, server: String::new() });
        if self.plan.machines[machine].kind == Kind::Hostile {
            self.send_hostile_report(machine, stream);
        }
    }

    /// Sends an earlier report of the machine, as a hostile peer.
    fn send_hostile_report(&mut self, machine: usize, stream: StreamId) {
        let host = self.plan.machines[machine].host;
        let said = self.invariants.reports_of(host);
        if said.is_empty() {
            return;
        }
        let report = said[self.random.below(said.len())].clone();
        self.trace(|| format!("machine {machine}: lies {report:?}"));
        self.send(stream, End::Server, Packet::Report(Report::AppHealth(report)));
    }

    fn node(&self, machine: usize) -> Node {
        let plan = &self.plan.machines[machine];
        let ip = address(plan.host);
        let has_probe = self.processes[machine].as_ref().is_some_and(|process| process.probe.is_some());
        Node {
            id: format!("sidecar~{ip}~vm-{}.{NAMESPACE}~{NAMESPACE}.svc.cluster.local", plan.host),
            namespace: Some(NAMESPACE.to_owned()),
            service_account: Some("default".to_owned()),
            instance_ips: vec![ip],
            group: plan.group.map(|group| GROUPS[group].to_owned()),
            workload_entry: plan.group.is_none().then(|| format!("vm-{}", plan.host)),
            readiness_probe: has_probe && plan.kind != Kind::Companion,
            app_health: matches!(plan.kind, Kind::AppHealth | Kind::Hostile),
            ..Node::default()
        }
    }

    pub(super) fn probe_validated(
        &mut self,
        machine: usize,
        run: u64,
        input: Input,
        probe: Option<&serde_json::Value>,
    ) {
        let has_file = self.plan.machines[machine].file.is_some();
        let Some(process) = &mut self.processes[machine] else { return };
        if process.run != run {
            return;
        }
        if !has_file {
            let probe = probe.map(|probe| {
                WorkloadProbe::parse(probe).expect("the server pushes what it has checked").value
            });
            process.pushed(self.now, probe.as_ref());
            self.send_status(machine);
        }
        self.step_machine(machine, input);
    }

    pub(super) fn arrive_at_machine(&mut self, stream: StreamId, packet: Packet) {
        let Some(connection) = self.network.get(stream).filter(|it| it.machine_open) else { return };
        let (machine, run) = (connection.machine, connection.run);
        if let Some(envoy) = machine.checked_sub(self.processes.len()) {
            return self.arrive_at_envoy(stream, envoy, packet);
        }
        let is_current = |process: &Process| process.run == run && process.stream == Some(stream);
        if !self.processes[machine].as_ref().is_some_and(is_current) {
            return;
        }
        match packet {
            Packet::Hello { hello, version, nonce } => {
                let any = any("", &encode_struct(&hello.to_json()));
                let head = ResponseHead { type_url: type_url::PROBE, version: &version, nonce: &nonce };
                let resource = ResourceRef { name: "probe", version: "", any: &any };
                let message = head.encode(Variant::Sotw, [resource], []);
                self.step_machine(machine, Input::UpstreamResponse(message));
            }
            Packet::Ack(_) if self.injected_bug == Some(InjectedBug::DeafToAcknowledgements) => {}
            Packet::Ack(version) => {
                let head =
                    ResponseHead { type_url: type_url::HEALTH_INFORMATION, version: &version, nonce: "" };
                let message = head.encode(Variant::Sotw, [], []);
                self.step_machine(machine, Input::UpstreamResponse(message));
            }
            Packet::End { refused } => self.machine_lost(stream, refused),
            _ => {}
        }
    }

    /// Handles the loss of a connection at the machine's end.
    pub(super) fn machine_lost(&mut self, stream: StreamId, refused: bool) {
        let Some(connection) = self.network.get(stream) else { return };
        let machine = connection.machine;
        if let Some(envoy) = machine.checked_sub(self.processes.len()) {
            return self.envoy_lost(stream, envoy);
        }
        self.send(stream, End::Server, Packet::Fin);
        self.network.close(stream, End::Machine);
        let Some(process) = &mut self.processes[machine] else { return };
        if process.stream != Some(stream) {
            return;
        }
        process.stream = None;
        if self.injected_bug == Some(InjectedBug::NeverReconnect)
            && self.plan.machines[machine].kind == Kind::Istio
        {
            return;
        }
        self.step_machine(machine, closed(refused));
    }
}

fn closed(is_rejected: bool) -> Input {
    Input::UpstreamClosed { is_rejected, reason: "lost".to_owned() }
}
