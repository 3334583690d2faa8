//! The operator's configuration: groups with their probes, manual entries, and a service for each
//! group.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use discovery::objects::{
    Config, ExportTo, Group, Key, LastEndpoint, ManualEntry, Port, Protocol, Service, Source, Spec,
};
use discovery_server::store::kubernetes::object::HEALTH_CHECKS;
use serde_json::{Value, json};
use workload_health::WorkloadGroup;

use super::plan::{Edit, GROUPS, MachinePlan, Plan, ProbePlan};

/// The namespace of all objects.
pub const NAMESPACE: &str = "shop";

#[derive(Debug, Clone)]
pub struct Configuration {
    /// By group number; `None`: the group does not exist.
    pub groups: Vec<Option<Option<ProbePlan>>>,
    /// By group number: whether it has existed without a probe. Entries that were registered then are not
    /// health-checked until an agent reports.
    pub was_without_probe: Vec<bool>,
    /// The existing manual entries, by host.
    pub entries: BTreeMap<usize, bool>,
    last_endpoint: LastEndpoint,
}

impl Configuration {
    /// Returns the initial configuration: all groups, and an entry for each machine that needs one.
    pub fn new(plan: &Plan) -> Self {
        let manual = plan.machines.iter().filter(|machine| machine.group.is_none());
        Self {
            groups: plan.groups.iter().copied().map(Some).collect(),
            was_without_probe: plan.groups.iter().map(Option::is_none).collect(),
            entries: manual.map(|machine| (machine.host, true)).collect(),
            last_endpoint: plan.last_endpoint,
        }
    }

    pub fn edit(&mut self, edit: &Edit) {
        match edit {
            Edit::Probe { group, probe } => {
                if let Some(exists) = &mut self.groups[*group] {
                    *exists = *probe;
                }
            }
            Edit::Group { group, exists: true } => {
                self.groups[*group].get_or_insert(None);
            }
            Edit::Group { group, exists: false } => self.groups[*group] = None,
            Edit::Entry { host, exists } => {
                if let Some(entry) = self.entries.get_mut(host) {
                    *entry = *exists;
                }
            }
        }
        for (was_without, group) in self.was_without_probe.iter_mut().zip(&self.groups) {
            *was_without |= *group == Some(None);
        }
    }

    /// Returns the configuration as the server reads it.
    pub fn config(&self) -> Arc<Config> {
        let mut config = Config::default();
        for (name, probe) in GROUPS.iter().zip(&self.groups) {
            let key = Key::new(NAMESPACE, *name);
            config.services.insert(key.clone(), Arc::new(service(name, self.last_endpoint)));
            if let Some(probe) = probe {
                config.groups.insert(key, group(name, *probe));
            }
        }
        for (host, exists) in &self.entries {
            if *exists {
                let labels = BTreeMap::from([("app".to_owned(), GROUPS[0].to_owned())]);
                let spec = Arc::new(Spec { address: address(*host), labels, ..Spec::default() });
                let entry = ManualEntry { spec, annotations: BTreeMap::new(), health_checks: Some(true) };
                config.entries.insert(manual_key(*host), Arc::new(entry));
            }
        }
        Arc::new(config)
    }
}

/// Returns the name of the cluster of a group's service.
pub fn cluster(group: &str) -> String {
    format!("outbound|80||{group}.test")
}

/// Returns the manual entry of a host as an object of the API server.
pub fn manual_entry(host: usize, now: Duration) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
        "metadata": {
            "name": manual_key(host).name, "namespace": NAMESPACE, "uid": format!("{host}-{now:?}"),
            "annotations": { HEALTH_CHECKS: "true" },
        },
        "spec": { "address": address(host), "labels": { "app": GROUPS[0] } },
    })
}

pub fn manual_key(host: usize) -> Key {
    Key::new(NAMESPACE, format!("vm-{host}"))
}

pub fn address(host: usize) -> String {
    format!("10.0.0.{}", host + 1)
}

/// Returns the key of a machine's entry.
pub fn key(machine: &MachinePlan) -> Key {
    match machine.group {
        Some(group) => Key::new(NAMESPACE, format!("{}-{}", GROUPS[group], address(machine.host))),
        None => manual_key(machine.host),
    }
}

fn group(name: &str, probe: Option<ProbePlan>) -> Arc<Group> {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "metadata": { "labels": { "app": name } },
            "template": { "ports": { "http": 8080 } },
            "probe": probe.map_or(Value::Null, probe_document),
        },
    });
    let group = WorkloadGroup::parse(&document).expect("a valid group").value;
    Arc::new(Group::new(Key::new(NAMESPACE, name), group))
}

fn probe_document(probe: ProbePlan) -> Value {
    json!({
        "initialDelaySeconds": probe.initial_delay, "periodSeconds": probe.period,
        "timeoutSeconds": probe.timeout, "successThreshold": probe.success,
        "failureThreshold": probe.failure, "httpGet": { "port": 8080 },
    })
}

fn service(name: &str, last_endpoint: LastEndpoint) -> Service {
    let port = Port { number: 80, name: "http".to_owned(), protocol: Protocol::Http, target_port: None };
    Service {
        key: Key::new(NAMESPACE, name),
        hosts: vec![format!("{name}.test")],
        ports: vec![port],
        source: Source::Selector(BTreeMap::from([("app".to_owned(), name.to_owned())])),
        export_to: ExportTo::All,
        created: None,
        last_endpoint: Some(last_endpoint),
    }
}
