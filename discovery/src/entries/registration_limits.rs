//! Limits how many entries the agents of one certificate identity, and those of them at one source, may
//! register. The identity alone says little, because all machines of a service commonly share it.

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
        let (mut of_identity, mut of_source) = (0, 0);
        let of_namespace = self.entries.range(Key::new(key.namespace.clone(), "")..);
        for (_, entry) in of_namespace.take_while(|(other, _)| other.namespace == key.namespace) {
            let Some(other) = &entry.registrant else { continue };
            if other.service_account == registrant.service_account {
                of_identity += 1;
                of_source += usize::from(other.source == registrant.source);
            }
        }
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
