//! Limits how many entries the agents of one certificate identity, and those of them at one source, may
//! register. The identity alone says little, because all machines of a service commonly share it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use pacing::source::Source;

use super::Entries;
use crate::objects::Key;

/// The certificate identity, in the namespace of its entry, and the source that registered an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registrant {
    /// `None` without a certificate.
    pub(super) service_account: Option<String>,
    pub(super) source: Source,
}

/// How many entries each registrant has. They are counted when an entry changes, because a client can
/// register thousands of them, each of which is checked.
#[derive(Debug, Default)]
pub(super) struct Registrations(BTreeMap<(String, Option<String>), Registered>);

#[derive(Debug, Default)]
struct Registered {
    all: usize,
    of_source: BTreeMap<Source, usize>,
}

impl Registrations {
    /// Replaces the registrant of an entry in `namespace`.
    pub(super) fn replace(&mut self, namespace: &str, old: Option<&Registrant>, new: Option<&Registrant>) {
        let of = |registrant: &Registrant| (namespace.to_owned(), registrant.service_account.clone());
        if let Some(new) = new {
            let registered = self.0.entry(of(new)).or_default();
            registered.all += 1;
            *registered.of_source.entry(new.source).or_default() += 1;
        }
        let Some(old) = old else { return };
        let Some(registered) = self.0.get_mut(&of(old)) else { return };
        registered.all -= 1;
        if let Some(number) = registered.of_source.get_mut(&old.source) {
            *number -= 1;
            if *number == 0 {
                registered.of_source.remove(&old.source);
            }
        }
        if registered.all == 0 {
            self.0.remove(&of(old));
        }
    }

    /// Returns the numbers of entries of the registrant's identity, and of those at its source.
    fn count(&self, namespace: &str, registrant: &Registrant) -> (usize, usize) {
        let registered = self.0.get(&(namespace.to_owned(), registrant.service_account.clone()));
        registered.map_or((0, 0), |registered| {
            (registered.all, registered.of_source.get(&registrant.source).copied().unwrap_or_default())
        })
    }
}

impl Entries {
    /// Checks that the registrant may register one more entry in the namespace of `key`.
    ///
    /// # Errors
    /// Returns the limit that is reached.
    pub(super) fn check_limits(
        &self,
        key: &Key,
        address: IpAddr,
        registrant: &Registrant,
    ) -> Result<(), String> {
        let (of_identity, of_source) = self.registrations.count(&key.namespace, registrant);
        if of_source >= self.settings.max_machines_per_source {
            let source = if address.is_ipv6() { "the /64 network of the address" } else { "the address" };
            return Err(format!(
                "{of_source} machines of {source} {address} are registered with this identity, no more are allowed (--max-machines-per-source)"
            ));
        }
        if registrant.service_account.is_some() && of_identity >= self.settings.max_machines_per_identity {
            return Err(format!(
                "{of_identity} machines are registered with this identity, no more are allowed (--max-machines-per-identity)"
            ));
        }
        Ok(())
    }
}
