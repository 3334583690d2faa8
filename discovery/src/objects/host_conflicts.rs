//! Detects ServiceEntries of one namespace that have the same host and port. The first one takes
//! precedence.

use std::collections::BTreeMap;

use super::{Key, Service};

/// The owner of each namespace, host and port.
#[derive(Debug, Default)]
pub struct HostConflicts<'a>(BTreeMap<(&'a str, &'a str, u16), &'a Key>);

impl<'a> HostConflicts<'a> {
    /// Returns an error for each host and port of `service` that another ServiceEntry owns.
    pub fn conflicts(&self, service: &Service) -> Vec<String> {
        let mut conflicts = Vec::new();
        for (index, host) in service.hosts.iter().enumerate() {
            for port in &service.ports {
                let claim = (service.key.namespace.as_str(), host.as_str(), port.number);
                if let Some(owner) = self.0.get(&claim) {
                    let number = port.number;
                    conflicts.push(format!(
                        "spec.hosts[{index}]: {host:?} port {number} is already defined by ServiceEntry {owner}"
                    ));
                }
            }
        }
        conflicts
    }

    /// Assigns the hosts and ports that have no owner to `service`.
    pub fn add(&mut self, service: &'a Service) {
        for host in &service.hosts {
            for port in &service.ports {
                self.0.entry((&service.key.namespace, host, port.number)).or_insert(&service.key);
            }
        }
    }
}
