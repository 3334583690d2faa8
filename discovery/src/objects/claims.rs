//! Whose a host and port is: in a namespace that of one service, the first.

use std::collections::BTreeMap;

use super::{Key, Service};

/// What is taken: namespace, host and port.
#[derive(Debug, Default)]
pub struct Claims<'a>(BTreeMap<(&'a str, &'a str, u16), &'a Key>);

impl<'a> Claims<'a> {
    /// What of it others have already, as `spec.hosts[0]: "pay.shop" port 80 is that of ServiceEntry shop/pay too, which comes first`.
    pub fn conflicts(&self, service: &Service) -> Vec<String> {
        let mut conflicts = Vec::new();
        for (index, host) in service.hosts.iter().enumerate() {
            for port in &service.ports {
                let claim = (service.key.namespace.as_str(), host.as_str(), port.number);
                if let Some(owner) = self.0.get(&claim) {
                    let number = port.number;
                    conflicts.push(format!(
                        "spec.hosts[{index}]: {host:?} port {number} is that of ServiceEntry {owner} too, which comes first"
                    ));
                }
            }
        }
        conflicts
    }

    /// Takes what of it is free.
    pub fn add(&mut self, service: &'a Service) {
        for host in &service.hosts {
            for port in &service.ports {
                self.0.entry((&service.key.namespace, host, port.number)).or_insert(&service.key);
            }
        }
    }
}
