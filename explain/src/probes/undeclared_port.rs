//! A probe of a port that has a name, which the container does not declare.

use injector::{Probe, ProbeKind};

use super::{ProbeRow, State};
use crate::advice;
use crate::container::Container;
use crate::wording::probe::ProbeError;

/// Returns the name of the port to which kubelet sends a probe, if the container does not declare
/// it.
pub(super) fn name<'a>(container: &Container<'_>, sent: Probe<'a>) -> Option<&'a str> {
    // kubelet also accepts a number in quotes.
    let is_undeclared = |name: &&str| container.named_port(name).is_none() && name.parse::<u16>().is_err();
    sent.handler()?.port_name().filter(is_undeclared)
}

/// kubelet cannot perform the probe, so a container with such a liveness probe is not restarted.
pub(super) fn describe(row: &mut ProbeRow, port: &str) {
    row.state = if row.probe == ProbeKind::Liveness { State::Unknown } else { State::Failing };
    row.is_discarded = true;
    row.error = Some(ProbeError::NamedPort);
    row.text = format!("the container declares no port with the name {port}");
    advice::of_error(ProbeError::NamedPort, row.destination).0.clone_into(&mut row.advice);
}
