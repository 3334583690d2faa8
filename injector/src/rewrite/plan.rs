//! Plans the changes of every probe and hook of a Pod.

use std::collections::BTreeMap;

use probe::ProbePath;
use serde_json::Value;

use super::change::{Change, HandlerEdit, ProbeField, ProbeLocation};
use super::handler::{self, Declared, SkipReason};
use super::original_probes::OriginalProbes;
use super::prober_env::ProberEntries;
use crate::pod;
use crate::warning::{Code, Warning};
use crate::{ProbeResult, ProbeSummary};

const FIELDS: [ProbeField; 5] = [
    ProbeField { name: "livenessProbe", word: "livez", hook: false },
    ProbeField { name: "readinessProbe", word: "readyz", hook: false },
    ProbeField { name: "startupProbe", word: "startupz", hook: false },
    ProbeField { name: "preStop", word: "prestopz", hook: true },
    ProbeField { name: "postStart", word: "poststartz", hook: true },
];

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
    /// Finds the container `name`.
    pub(crate) fn find(spec: &Value, name: &str) -> Option<Self> {
        let find = |list: &'static str| {
            let index = pod::list(spec, list).iter().position(|container| pod::name(container) == name)?;
            Some((list, index))
        };
        let (list, index) = find("initContainers").or_else(|| find("containers"))?;
        let container = &spec[list][index];
        let native = list == "initContainers";
        let hooked = container.pointer("/lifecycle/postStart").is_some_and(|hook| !hook.is_null());
        let holds = hooked || native && pod::field(container, "startupProbe").is_some();
        Some(Self { list, index, native, holds })
    }

    /// Returns true if the sidecar starts before the container `index` of `list`.
    fn is_before(&self, list: &str, index: usize) -> bool {
        if self.list == list { self.index < index } else { self.native }
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
    spec: &Value,
    sidecar: &Sidecar,
    status_port: u16,
    entries: &ProberEntries,
    originals: &OriginalProbes,
) -> Plan {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for container in pod::containers(spec) {
        *names.entry(pod::name(container)).or_default() += 1;
    }
    let mut plan = Plan::default();
    for list in pod::CONTAINER_LISTS {
        for (index, container) in pod::list(spec, list).iter().enumerate() {
            if (list, index) == (sidecar.list, sidecar.index) {
                continue;
            }
            let name = pod::name(container);
            let usable = names.get(name) == Some(&1) && key(name, &FIELDS[0]).is_some();
            let view = ContainerView {
                list,
                index,
                container,
                name,
                usable,
                sidecar,
                status_port,
                entries,
                originals,
            };
            for field in &FIELDS {
                view.plan(field, &mut plan);
            }
        }
    }
    plan
}

/// Returns the path of a container's probe or hook; `None` if the container's name is not valid in
/// a path.
fn key(container: &str, field: &ProbeField) -> Option<String> {
    let prefix = if field.hook { "/app-lifecycle" } else { "/app-health" };
    let key = format!("{prefix}/{container}/{}", field.word);
    ProbePath::parse(&key).is_some().then_some(key)
}

/// What happens to a probe or hook.
enum ProbeEdit {
    /// It targets the proxy already.
    Done,
    /// It is changed, and its entry with this key and text is added to the declared probes.
    Rewrite(HandlerEdit, Option<(String, String)>),
    /// It is not rewritten.
    Leave(SkipReason),
}

/// A container with everything that matters for its probes.
struct ContainerView<'a> {
    list: &'static str,
    index: usize,
    container: &'a Value,
    name: &'a str,
    /// True if the name is unique, and valid in a path.
    usable: bool,
    sidecar: &'a Sidecar,
    status_port: u16,
    entries: &'a ProberEntries,
    originals: &'a OriginalProbes,
}

impl ContainerView<'_> {
    fn plan(&self, field: &'static ProbeField, plan: &mut Plan) {
        let parent = if field.hook { pod::field(self.container, "lifecycle") } else { Some(self.container) };
        let Some(value) = parent.and_then(|parent| pod::field(parent, field.name)) else { return };
        let Some(declared) = handler::declared(value, field.hook) else { return };
        let handler = declared.as_ref().map_or("", |declared| declared.name);
        let display_name = match key(self.name, field) {
            Some(_) => self.name.to_owned(),
            None => format!("{}[{}]", self.list, self.index),
        };
        let (result, code) = match self.edit(field, value, declared) {
            ProbeEdit::Done => (ProbeResult::AlreadyRewritten, None),
            ProbeEdit::Rewrite(edit, entry) => {
                let container = self.name.to_owned();
                let location = ProbeLocation { list: self.list, index: self.index, container, field };
                plan.changes.push(Change { location, edit, entry });
                (ProbeResult::Rewritten, None)
            }
            ProbeEdit::Leave((code, text)) => {
                plan.warnings.push(Warning::about_field(code, &display_name, field.name, text));
                (ProbeResult::NotRewritten, Some(code))
            }
        };
        let word = field.word.to_owned();
        plan.probes.push(ProbeSummary { container: display_name, word, handler, result, code });
    }

    fn edit(&self, field: &ProbeField, value: &Value, declared: Result<Declared, SkipReason>) -> ProbeEdit {
        let key = key(self.name, field).filter(|_| self.usable);
        if let (Some(key), Ok(declared)) = (&key, &declared)
            && declared.is_rewritten_to(key)
            && let Some(edit) = self.edit_rewritten(field, key, declared)
        {
            return edit;
        }
        let Some(key) = key else {
            let text = "container name is not unique, or not valid in a probe path";
            return ProbeEdit::Leave((Code::Name, text.to_owned()));
        };
        let rewrite = self.check_start_order(field).and(declared).and_then(|declared| {
            let entry = self.entry(field, value, declared, &key)?;
            let timeout = (!field.hook).then(|| handler::kubelet_timeout(&handler::timeout(value)));
            let edit = HandlerEdit::Replace { handler: declared.name, key: key.clone(), timeout };
            Ok(ProbeEdit::Rewrite(edit, Some((key, entry))))
        });
        rewrite.unwrap_or_else(ProbeEdit::Leave)
    }

    /// Handles a probe whose path is its own key. Returns `None` if it is a probe of the
    /// application nevertheless.
    fn edit_rewritten(&self, field: &ProbeField, key: &str, declared: &Declared) -> Option<ProbeEdit> {
        let is_status_port = declared.port(self.container).is_ok_and(|port| port == self.status_port);
        let edit = if is_status_port { HandlerEdit::Keep } else { HandlerEdit::SetPort };
        if self.entries.contains(key) {
            return Some(if is_status_port { ProbeEdit::Done } else { ProbeEdit::Rewrite(edit, None) });
        }
        if let Some(entry) = self.original_entry(field, key) {
            return Some(ProbeEdit::Rewrite(edit, Some((key.to_owned(), entry))));
        }
        let text = "targets the proxy, which has no entry for it";
        is_status_port.then(|| ProbeEdit::Leave((Code::Orphan, text.to_owned())))
    }

    /// Returns the entry of the recorded original probe, if there is one and it is valid.
    fn original_entry(&self, field: &ProbeField, key: &str) -> Option<String> {
        let value = self.originals.get(self.name, field.name)?;
        let declared = handler::declared(value, field.hook)?.ok()?;
        self.entry(field, value, declared, key).ok()
    }

    fn entry(
        &self,
        field: &ProbeField,
        value: &Value,
        declared: Declared,
        key: &str,
    ) -> Result<String, SkipReason> {
        let timeout = (!field.hook).then(|| handler::timeout(value));
        declared.entry(self.container, timeout, key, self.status_port)
    }

    /// Checks that the proxy is running when kubelet runs the probe or hook.
    fn check_start_order(&self, field: &ProbeField) -> Result<(), SkipReason> {
        let refuse = |code, text: &str| Err((code, text.to_owned()));
        let early =
            "the proxy may not be running yet: use a native sidecar or holdApplicationUntilProxyStarts";
        let before = self.sidecar.is_before(self.list, self.index);
        let late_hook = field.name != "postStart" || before && self.sidecar.holds;
        if self.list == "containers" {
            return if late_hook { Ok(()) } else { refuse(Code::HookEarly, early) };
        }
        if !pod::is_native_sidecar(self.container) {
            return refuse(Code::Init, "Kubernetes does not support probes of init containers");
        }
        match (self.sidecar.native && before, field.name) {
            (true, _) if late_hook => Ok(()),
            (true, _) => refuse(Code::HookEarly, early),
            (false, "readinessProbe") => Ok(()),
            (false, _) => refuse(Code::BeforeProxy, "starts before the proxy"),
        }
    }
}
