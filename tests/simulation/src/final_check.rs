//! Checks the final state: which endpoints exist must follow from the running agents and their
//! health.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use discovery::entries::{Preserved, UnknownPolicy};
use discovery::objects::{Key, LastEndpoint};
use workload_health::{HealthReason, State};

use super::configuration;
use super::plan::{GROUPS, Kind, MachinePlan};
use super::process::{AgentClient, Process};
use super::world::{Client, Server, World};

impl World {
    /// Compares the served endpoints with the expected ones.
    ///
    /// # Errors
    /// Describes the first difference.
    pub fn compare(&self) -> Result<(), String> {
        for (replica, server) in self.servers.iter().enumerate() {
            let Some(server) = server else {
                return Err(format!("final state: server {replica} is not running"));
            };
            self.compare_server(server).map_err(|text| {
                if self.servers.len() == 1 { text } else { format!("{text}; at server {replica}") }
            })?;
        }
        if self.invariants.moved() + Duration::from_secs(60) > self.now {
            return Err(format!("final state: endpoints still change, at {:?}", self.invariants.moved()));
        }
        self.compare_envoys()
    }

    fn compare_server(&self, server: &Server) -> Result<(), String> {
        let served: Vec<_> = server.entries.workloads().filter(|it| it.served).map(|it| it.key).collect();
        for (machine, plan) in self.plan.machines.iter().enumerate() {
            if !matches!(plan.kind, Kind::AppHealth | Kind::Istio) {
                continue;
            }
            let key = configuration::key(plan);
            let Some(expected) = self.expected(machine, server)? else { continue };
            if server.snapshot.preserved().get(&key) == Some(&Preserved::Silent) {
                self.check_preserved(machine)?;
                continue;
            }
            if served.contains(&key) != expected {
                let process = self.processes[machine].as_ref();
                let health = process.map(|process| &process.health);
                let views = server.entries.view(self.now - server.started);
                let view = views.into_iter().find(|view| view.name == key.name);
                return Err(format!(
                    "final state: {key}: expected served={expected}; machine {machine}: {health:?}; server: {view:?}"
                ));
            }
            if let Some(Process { client: AgentClient::AppHealth(proxy), started, .. }) =
                &self.processes[machine]
                && self.is_registered(machine)
            {
                // A heartbeat may be in flight.
                let waits = |since: &Duration| self.now > *started + *since + Duration::from_secs(10);
                if let Some(since) = proxy.reporter().unacknowledged().filter(waits) {
                    return Err(format!(
                        "final state: machine {machine} has waited for an acknowledgement since {since:?}"
                    ));
                }
                if proxy.reporter().session().is_none_or(|session| session == 0) {
                    return Err(format!("final state: machine {machine} has no session"));
                }
            }
        }
        Ok(())
    }

    /// Checks that the endpoint of a machine may be preserved: at least three machines of its service
    /// are gone.
    fn check_preserved(&self, machine: usize) -> Result<(), String> {
        let service = |machine: &MachinePlan| machine.group.unwrap_or(0);
        let others = self.plan.machines.iter().zip(&self.processes);
        let gone = others.filter(|(plan, process)| {
            matches!(plan.kind, Kind::AppHealth | Kind::Istio)
                && service(plan) == service(&self.plan.machines[machine])
                && process.is_none()
        });
        let gone = gone.count();
        if gone < 3 || self.processes[machine].is_some() {
            return Err(format!(
                "final state: machine {machine} is preserved, {gone} of its service are gone"
            ));
        }
        Ok(())
    }

    /// Compares the endpoints of each Envoy with the served ones.
    fn compare_envoys(&self) -> Result<(), String> {
        for (number, client) in self.clients.iter().enumerate() {
            let Some(server) = self.server_of(client) else {
                return Err(format!("final state: envoy {number} is not connected"));
            };
            for (index, group) in GROUPS.iter().enumerate() {
                let cluster = configuration::cluster(group);
                let is_member = |plan: &&MachinePlan| plan.group.map_or(index == 0, |it| it == index);
                let members = self.plan.machines.iter().filter(is_member);
                let members: BTreeMap<Key, String> = members
                    .map(|plan| (configuration::key(plan), configuration::address(plan.host)))
                    .collect();
                let served = server.entries.workloads().filter(|it| it.served);
                let mut served: BTreeSet<String> =
                    served.filter_map(|it| members.get(&it.key).cloned()).collect();
                let preserved = |is: fn(Preserved) -> bool| {
                    let found =
                        server.snapshot.preserved().iter().filter(move |(_, preserved)| is(**preserved));
                    found.filter_map(|(key, _)| members.get(key).cloned())
                };
                served.extend(preserved(Preserved::is_self_preserved));
                let last = preserved(|preserved| preserved == Preserved::LastEndpoint);
                if served.is_empty() && self.plan.last_endpoint == LastEndpoint::Keep {
                    served.extend(last.take(1));
                }
                if client.envoy.endpoints.get(&cluster) != Some(&served) {
                    let has = &client.envoy.endpoints;
                    return Err(format!(
                        "final state: envoy {number} has {has:?}, but {cluster} is served as {served:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the server to which an Envoy is connected.
    fn server_of(&self, client: &Client) -> Option<&Server> {
        let run = self.network.server(client.stream?)?;
        self.servers.iter().flatten().find(|server| server.run == run)
    }

    /// Returns whether the object exists for which the machine registers.
    fn is_registered(&self, machine: usize) -> bool {
        let plan = &self.plan.machines[machine];
        match plan.group {
            Some(group) => self.configuration.groups[group].is_some(),
            None => self.configuration.entries.get(&plan.host) == Some(&true),
        }
    }

    /// Returns whether the machine has an entry that is not health-checked, and no agent has reported on it.
    fn is_unreported(&self, machine: usize, server: &Server) -> bool {
        let key = configuration::key(&self.plan.machines[machine]);
        let views = server.entries.view(self.now - server.started);
        let view = views.iter().find(|view| view.name == key.name);
        view.is_some_and(|view| view.agent.is_none() && view.why == "not health-checked")
    }

    /// Returns whether the machine's endpoint must be served; `None`: both are allowed.
    fn expected(&self, machine: usize, server: &Server) -> Result<Option<bool>, String> {
        let plan = &self.plan.machines[machine];
        if !self.is_registered(machine) {
            return Ok(Some(false));
        }
        let keeps = self.plan.settings.unknown_policy == UnknownPolicy::Keep;
        let Some(process) = &self.processes[machine] else {
            let others = self.plan.machines.iter().zip(&self.processes);
            let is_there = others
                .filter(|(other, process)| other.host == plan.host && process.is_some())
                .any(|(other, _)| other.kind == Kind::Companion);
            // This is an Envoy whose agent has ended, with a policy that keeps endpoints or in a group
            // without a probe. One that registered before its group got a probe is not health-checked
            // until an agent reports.
            let is_unchecked = |group: usize| {
                let has_probe = self.configuration.groups[group].flatten().is_some();
                !has_probe
                    || (self.configuration.was_without_probe[group] && self.is_unreported(machine, server))
            };
            let may_stay = is_there && plan.group.is_some_and(|group| keeps || is_unchecked(group));
            let is_preserved = plan.group.is_none() && keeps;
            return Ok((!may_stay && !is_preserved).then_some(false));
        };
        let verdict = process.health.verdict();
        match (verdict.state, verdict.reason) {
            (State::Healthy, _) => Ok(Some(true)),
            (State::Unhealthy, _) => Ok(Some(false)),
            (State::Unknown, HealthReason::NoProbe) => Ok(Some(plan.group.is_some())),
            (State::Unknown, reason) => {
                Err(format!("final state: machine {machine} has no verdict: {reason:?}, {process:?}"))
            }
        }
    }
}
