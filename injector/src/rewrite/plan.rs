//! Plans the changes of every probe and hook of a Pod.

use std::collections::BTreeMap;

use probe::{ProbeKind, ProbePath};

use super::change::{Change, HandlerEdit, ProbeLocation};
use super::handler::{self, Declared, Refusal};
use super::original_probes::OriginalProbes;
use super::prober_env::ProberEntries;
use super::summary::{ProbeResult, ProbeSummary};
use crate::container::{Container, Role};
use crate::declared_probe::Probe;
use crate::warning::{Code, Warning};

/// The position of the sidecar and its effect on the other containers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sidecar {
    pub list: &'static str,
    pub index: usize,
    native: bool,
    /// True if kubelet waits for the sidecar before it starts the next container.
    holds: bool,
}

impl Sidecar {
    /// Finds the container that is the proxy.
    pub(crate) fn find(containers: &[Container]) -> Option<Self> {
        let container = containers.iter().find(|container| container.role == Role::Proxy)?;
        let native = container.list == "initContainers";
        let holds = container.probe(ProbeKind::PostStart).is_some()
            || native && container.probe(ProbeKind::Startup).is_some();
        Some(Self { list: container.list, index: container.index, native, holds })
    }

    /// Returns true if the sidecar starts before the container.
    fn is_before(&self, container: &Container) -> bool {
        if self.list == container.list { self.index < container.index } else { self.native }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub changes: Vec<Change>,
    pub probes: Vec<ProbeSummary>,
    pub warnings: Vec<Warning>,
}

/// Plans the changes of all containers except the sidecar.
pub(crate) fn plan(
    containers: &[Container],
    sidecar: &Sidecar,
    status_port: u16,
    entries: &ProberEntries,
    originals: &OriginalProbes,
) -> Plan {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for container in containers {
        *names.entry(container.name).or_default() += 1;
    }
    let mut plan = Plan::default();
    for container in containers.iter().filter(|container| container.role != Role::Proxy) {
        let is_unique = names.get(container.name) == Some(&1);
        let planner = ProbePlanner { container, is_unique, sidecar, status_port, entries, originals };
        for probe in container.probes().chain(container.hooks()) {
            let Some(declared) = handler::declared(probe) else { continue };
            let handler = declared.as_ref().map_or("", |declared| declared.kind.name());
            plan.add(container, probe.kind, handler, planner.edit(probe, declared));
        }
    }
    plan
}

impl Plan {
    fn add(&mut self, container: &Container, kind: ProbeKind, handler: &'static str, edit: ProbeEdit) {
        let Container { list, index, name, .. } = *container;
        let display_name = match ProbePath::new(name, kind) {
            Some(_) => name.to_owned(),
            None => format!("{list}[{index}]"),
        };
        let (result, code) = match edit {
            ProbeEdit::Done => (ProbeResult::AlreadyRewritten, None),
            ProbeEdit::Rewrite(edit, entry) => {
                let location = ProbeLocation { list, index, container: name.to_owned(), kind };
                self.changes.push(Change { location, edit, entry });
                (ProbeResult::Rewritten, None)
            }
            ProbeEdit::Leave((code, text)) => {
                self.warnings.push(Warning::about_field(code, &display_name, kind.field(), text));
                (ProbeResult::NotRewritten, Some(code))
            }
        };
        let word = kind.word().to_owned();
        self.probes.push(ProbeSummary { container: display_name, word, handler, result, code });
    }
}

/// What happens to a probe or hook.
enum ProbeEdit {
    /// It targets the proxy already.
    Done,
    /// It is changed, and its entry with this key and text is added to the declared probes.
    Rewrite(HandlerEdit, Option<(String, String)>),
    /// It is not rewritten.
    Leave(Refusal),
}

/// A container with everything that matters for its probes.
struct ProbePlanner<'a> {
    container: &'a Container<'a>,
    is_unique: bool,
    sidecar: &'a Sidecar,
    status_port: u16,
    entries: &'a ProberEntries,
    originals: &'a OriginalProbes,
}

impl ProbePlanner<'_> {
    fn edit(&self, probe: Probe, declared: Result<Declared, Refusal>) -> ProbeEdit {
        let path = ProbePath::new(self.container.name, probe.kind).filter(|_| self.is_unique);
        let Some(key) = path.map(|path| path.to_string()) else {
            let text = "container name is not unique, or not valid in a probe path";
            return ProbeEdit::Leave((Code::Name, text.to_owned()));
        };
        if let Ok(declared) = &declared
            && declared.is_rewritten_to(&key)
            && let Some(edit) = self.edit_rewritten(probe.kind, &key, declared)
        {
            return edit;
        }
        let rewrite = self.check_start_order(probe.kind).and(declared).and_then(|declared| {
            let entry = self.entry(probe, declared, &key)?;
            let timeout =
                (!probe.kind.is_hook()).then(|| handler::kubelet_timeout(&handler::timeout(probe.value)));
            let edit = HandlerEdit::Replace { handler: declared.kind, key: key.clone(), timeout };
            Ok(ProbeEdit::Rewrite(edit, Some((key, entry))))
        });
        rewrite.unwrap_or_else(ProbeEdit::Leave)
    }

    /// Handles a probe whose path is its own key. Returns `None` if it is a probe of the
    /// application nevertheless.
    fn edit_rewritten(&self, kind: ProbeKind, key: &str, declared: &Declared) -> Option<ProbeEdit> {
        let is_status_port = declared.port(self.container).is_ok_and(|port| port == self.status_port);
        let edit = if is_status_port { HandlerEdit::Keep } else { HandlerEdit::SetPort };
        if self.entries.contains(key) {
            return Some(if is_status_port { ProbeEdit::Done } else { ProbeEdit::Rewrite(edit, None) });
        }
        if let Some(entry) = self.original_entry(kind, key) {
            return Some(ProbeEdit::Rewrite(edit, Some((key.to_owned(), entry))));
        }
        let text = "targets the proxy, which has no entry for it";
        is_status_port.then(|| ProbeEdit::Leave((Code::Orphan, text.to_owned())))
    }

    /// Returns the entry of the recorded original probe, if there is one and it is valid.
    fn original_entry(&self, kind: ProbeKind, key: &str) -> Option<String> {
        let probe = Probe { kind, value: self.originals.get(self.container.name, kind.field())? };
        let declared = handler::declared(probe)?.ok()?;
        self.entry(probe, declared, key).ok()
    }

    fn entry(&self, probe: Probe, declared: Declared, key: &str) -> Result<String, Refusal> {
        let timeout = (!probe.kind.is_hook()).then(|| handler::timeout(probe.value));
        declared.entry(self.container, timeout, key, self.status_port)
    }

    /// Checks that the proxy is running when kubelet runs the probe or hook.
    fn check_start_order(&self, kind: ProbeKind) -> Result<(), Refusal> {
        let refuse = |code, text: &str| Err((code, text.to_owned()));
        let early =
            "the proxy may not be running yet: use a native sidecar or holdApplicationUntilProxyStarts";
        let before = self.sidecar.is_before(self.container);
        let late_hook = kind != ProbeKind::PostStart || before && self.sidecar.holds;
        match self.container.role {
            Role::Init => refuse(Code::Init, "Kubernetes does not support probes of init containers"),
            Role::NativeSidecar if !(self.sidecar.native && before) => match kind {
                ProbeKind::Readiness => Ok(()),
                _ => refuse(Code::BeforeProxy, "starts before the proxy"),
            },
            Role::NativeSidecar | Role::Application | Role::Proxy if late_hook => Ok(()),
            Role::NativeSidecar | Role::Application | Role::Proxy => refuse(Code::HookEarly, early),
        }
    }
}
