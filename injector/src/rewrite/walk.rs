//! Plans the changes of every probe and hook of a Pod.

use std::collections::BTreeMap;

use probe::ProbePath;
use serde_json::Value;

use super::change::{Change, Edit, Place};
use crate::handler::{self, Declared, Reason};
use crate::pod;
use crate::record::Record;
use crate::table::Table;
use crate::warning::{Code, Warning};
use crate::{Probe, ProbeResult};

/// The field, the last segment of its path, and whether it is a hook.
const FIELDS: [(&str, &str, bool); 5] = [
    ("livenessProbe", "livez", false),
    ("readinessProbe", "readyz", false),
    ("startupProbe", "startupz", false),
    ("preStop", "prestopz", true),
    ("postStart", "poststartz", true),
];
const LISTS: [&str; 2] = ["initContainers", "containers"];

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
    pub probes: Vec<Probe>,
    pub warnings: Vec<Warning>,
}

/// Plans the changes of all containers except the sidecar.
pub(crate) fn plan(
    spec: &Value,
    sidecar: &Sidecar,
    status_port: u16,
    table: &Table,
    record: &Record,
) -> Plan {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for container in LISTS.into_iter().flat_map(|list| pod::list(spec, list)) {
        *names.entry(pod::name(container)).or_default() += 1;
    }
    let mut plan = Plan::default();
    for list in LISTS {
        for (index, container) in pod::list(spec, list).iter().enumerate() {
            if (list, index) == (sidecar.list, sidecar.index) {
                continue;
            }
            let name = pod::name(container);
            let usable = names.get(name) == Some(&1) && key(name, "livez", false).is_some();
            let seen = Seen { list, index, container, name, usable, sidecar, status_port, table, record };
            for (field, word, hook) in FIELDS {
                seen.field(field, word, hook, &mut plan);
            }
        }
    }
    plan
}

/// Returns the path of a container's probe or hook; `None` if the container's name is not valid in
/// a path.
fn key(container: &str, word: &str, hook: bool) -> Option<String> {
    let prefix = if hook { "/app-lifecycle" } else { "/app-health" };
    let key = format!("{prefix}/{container}/{word}");
    ProbePath::parse(&key).is_some().then_some(key)
}

/// A container with everything that matters for its probes.
struct Seen<'a> {
    list: &'static str,
    index: usize,
    container: &'a Value,
    name: &'a str,
    usable: bool,
    sidecar: &'a Sidecar,
    status_port: u16,
    table: &'a Table,
    record: &'a Record,
}

impl Seen<'_> {
    fn field(&self, field: &'static str, word: &str, hook: bool, plan: &mut Plan) {
        let parent = if hook { pod::field(self.container, "lifecycle") } else { Some(self.container) };
        let Some(value) = parent.and_then(|parent| pod::field(parent, field)) else { return };
        let declared = handler::declared(value, hook);
        let handler = match declared {
            Declared::Local => return,
            Declared::Handler(name, _) => name,
            Declared::Wrong(_) => "",
        };
        let (result, code) = match self.change(field, word, hook, value, declared) {
            Ok(None) => (ProbeResult::Done, None),
            Ok(Some((edit, entry))) => {
                let container = self.name.to_owned();
                let place = Place { list: self.list, index: self.index, container, field, hook };
                plan.changes.push(Change { place, edit, entry });
                (ProbeResult::Rewritten, None)
            }
            Err((code, text)) => {
                plan.warnings.push(Warning::of_field(code, self.shown_name(), field, text));
                (ProbeResult::Left, Some(code))
            }
        };
        plan.probes.push(Probe {
            container: self.shown_name(),
            word: word.to_owned(),
            handler,
            result,
            code,
        });
    }

    fn shown_name(&self) -> String {
        let valid = key(self.name, "livez", false).is_some();
        if valid { self.name.to_owned() } else { format!("{}[{}]", self.list, self.index) }
    }

    /// Returns the edit and the new entry; `None` if the probe is rewritten already.
    #[expect(clippy::type_complexity, reason = "an edit and an entry, named in `Change`")]
    fn change(
        &self,
        field: &'static str,
        word: &str,
        hook: bool,
        value: &Value,
        declared: Declared,
    ) -> Result<Option<(Edit, Option<(String, String)>)>, Reason> {
        let key = key(self.name, word, hook).filter(|_| self.usable);
        if let (Some(key), Declared::Handler(name, fields)) = (&key, &declared)
            && handler::leads_to(name, fields, key)
            && let Some(done) = self.own(field, key, hook, handler::port(fields, self.container).ok())
        {
            return done;
        }
        self.place(field, hook)?;
        let (name, fields) = match declared {
            Declared::Handler(name, fields) => (name, fields),
            Declared::Wrong(reason) => return Err(reason),
            Declared::Local => return Ok(None),
        };
        let key = key.ok_or_else(no_key)?;
        let timeout = (!hook).then(|| handler::timeout(value));
        let entry = handler::entry((name, fields), self.container, timeout.as_ref(), &key, self.status_port)?;
        let timeout = timeout.as_ref().map(handler::kubelets_timeout);
        Ok(Some((Edit::Replace { handler: name, key: key.clone(), timeout }, Some((key, entry)))))
    }

    /// Handles a probe whose path is its own key. Returns `None` if it is a probe of the
    /// application nevertheless.
    #[expect(clippy::type_complexity, reason = "as in `change`")]
    fn own(
        &self,
        field: &str,
        key: &str,
        hook: bool,
        port: Option<Value>,
    ) -> Option<Result<Option<(Edit, Option<(String, String)>)>, Reason>> {
        let here = port.is_some_and(|port| port == self.status_port);
        let edit = if here { Edit::None } else { Edit::Port };
        match (here, self.table.contains(key), self.recorded(field, key, hook)) {
            (true, true, _) => Some(Ok(None)),
            (false, true, _) => Some(Ok(Some((edit, None)))),
            (_, false, Some(entry)) => Some(Ok(Some((edit, Some((key.to_owned(), entry)))))),
            (true, false, None) => {
                Some(Err((Code::Orphan, "targets the proxy, which has no entry for it".to_owned())))
            }
            (false, false, None) => None,
        }
    }

    /// Returns the entry of the recorded original probe, if there is one and it is valid.
    fn recorded(&self, field: &str, key: &str, hook: bool) -> Option<String> {
        let value = self.record.original(self.name, field)?;
        let Declared::Handler(name, fields) = handler::declared(value, hook) else { return None };
        let timeout = (!hook).then(|| handler::timeout(value));
        handler::entry((name, fields), self.container, timeout.as_ref(), key, self.status_port).ok()
    }

    /// Checks that the proxy is running when kubelet runs the probe or hook.
    fn place(&self, field: &str, hook: bool) -> Result<(), Reason> {
        let refuse = |code, text: &str| Err((code, text.to_owned()));
        if !self.usable {
            return Err(no_key());
        }
        let early =
            "the proxy may not be running yet: use a native sidecar or holdApplicationUntilProxyStarts";
        let before = self.sidecar.is_before(self.list, self.index);
        let late_hook = field != "postStart" || before && self.sidecar.holds;
        if self.list == "containers" {
            return if late_hook { Ok(()) } else { refuse(Code::HookEarly, early) };
        }
        if !pod::is_native_sidecar(self.container) {
            return refuse(Code::Init, "Kubernetes does not support probes of init containers");
        }
        match (self.sidecar.native && before, field) {
            (true, _) if late_hook => Ok(()),
            (true, _) => refuse(Code::HookEarly, early),
            (false, "readinessProbe") if !hook => Ok(()),
            (false, _) => refuse(Code::BeforeProxy, "starts before the proxy"),
        }
    }
}

fn no_key() -> Reason {
    (Code::Name, "container name is not unique, or not valid in a probe path".to_owned())
}
