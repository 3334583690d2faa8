//! Where the probe in force comes from: a file of this machine, or a control plane. The file wins, and what is wrong changes nothing.

use std::sync::Arc;

use probe::OwnPorts;
use serde_json::Value;
use tracing::{error, info, warn};
use workload_health::{WorkloadHandler, WorkloadProbe};

use super::group_file::GroupFile;

/// The largest probe that is taken from a control plane, as JSON.
const PUSH_BYTES: usize = 64 << 10;

/// What this machine does not let a probe do.
#[derive(Debug, Clone, Default)]
pub struct LocalRules {
    /// Ports of the proxy, those that were moved too.
    pub own_ports: OwnPorts,
    /// Commands may come from a control plane.
    pub allow_pushed_exec: bool,
}

impl LocalRules {
    /// `Err`: why `probe` may not be.
    pub fn check(&self, probe: &WorkloadProbe) -> Result<(), String> {
        match (probe.handler.port(), probe.handler.port_path()) {
            (Some(port), Some(path)) if self.own_ports.contains(port.get()) => {
                Err(format!("{path}: {port} belongs to the proxy"))
            }
            _ => Ok(()),
        }
    }

    fn check_pushed(&self, probe: &WorkloadProbe) -> Result<(), String> {
        if matches!(probe.handler, WorkloadHandler::Exec { .. }) && !self.allow_pushed_exec {
            return Err("spec.probe.exec: refused, pushed exec probes need --allow-pushed-exec".to_owned());
        }
        self.check(probe)
    }
}

/// The probe in force and its source.
#[derive(Debug)]
pub(super) struct Source {
    file: Option<GroupFile>,
    rules: LocalRules,
    probe: Option<Arc<WorkloadProbe>>,
    was_pushed: bool,
    /// Said that pushes are ignored.
    said_ignored: bool,
    /// Why the newest file or push is not in force.
    error: Option<String>,
}

/// What a look at a source came to, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Config {
    /// The probe in force is another one.
    Applied,
    /// It is the same.
    Unchanged,
    /// A file of our own is there.
    Ignored,
    /// The old one stays.
    Refused,
}

impl Config {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::Ignored => "ignored",
            Self::Refused => "refused",
        }
    }
}

impl Source {
    pub(super) fn new(file: Option<GroupFile>, rules: LocalRules) -> Self {
        let probe = file.as_ref().and_then(|file| file.group.probe.clone()).map(Arc::new);
        Self { file, rules, probe, was_pushed: false, said_ignored: false, error: None }
    }

    pub(super) fn probe(&self) -> Option<&Arc<WorkloadProbe>> {
        self.probe.as_ref()
    }

    /// `file`, `discovery` or `none`.
    pub(super) fn word(&self) -> &'static str {
        match (&self.file, self.was_pushed) {
            (Some(_), _) => "file",
            (None, true) => "discovery",
            (None, false) => "none",
        }
    }

    pub(super) fn path(&self) -> Option<String> {
        self.file.as_ref().map(|file| file.path.display().to_string())
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Looks whether the file has changed; `None`: it has not.
    pub(super) fn look(&mut self) -> Option<Config> {
        let file = self.file.as_mut()?;
        let found = file.changed()?;
        let path = file.path.display().to_string();
        let found = found.and_then(|checked| {
            let probe = checked.value.probe;
            probe.as_ref().map_or(Ok(()), |probe| self.rules.check(probe)).map(|()| (probe, checked.warnings))
        });
        match found {
            Ok((probe, warnings)) => {
                for warning in warnings {
                    warn!(file = path, "{warning}");
                }
                Some(self.take(probe))
            }
            Err(text) => {
                error!(file = path, "the workload group is not taken, the old one stays: {text}");
                self.error = Some(text);
                Some(Config::Refused)
            }
        }
    }

    /// What a control plane says. `Err`: the text of the refusal.
    pub(super) fn push(&mut self, probe: Option<&Value>) -> (Config, Result<(), String>) {
        if self.file.is_some() {
            if !std::mem::replace(&mut self.said_ignored, true) {
                info!("the control plane's probe is ignored: --workload-group has one of its own");
            }
            return (Config::Ignored, Ok(()));
        }
        match probe.map(|probe| self.pushed(probe)).transpose() {
            Ok(probe) => {
                self.was_pushed = true;
                (self.take(probe), Ok(()))
            }
            Err(text) => {
                if self.error.as_ref() != Some(&text) {
                    error!("the control plane's probe is refused, the old one stays: {text}");
                }
                self.error = Some(text.clone());
                (Config::Refused, Err(text))
            }
        }
    }

    fn pushed(&self, value: &Value) -> Result<WorkloadProbe, String> {
        if value.to_string().len() > PUSH_BYTES {
            return Err("spec.probe: larger than 64 KiB".to_owned());
        }
        let checked = WorkloadProbe::parse(value).map_err(|errors| errors.join("; "))?;
        self.rules.check_pushed(&checked.value)?;
        for warning in checked.warnings {
            warn!("{warning}");
        }
        Ok(checked.value)
    }

    fn take(&mut self, probe: Option<WorkloadProbe>) -> Config {
        self.error = None;
        if self.probe.as_deref() == probe.as_ref() {
            return Config::Unchanged;
        }
        self.probe = probe.map(Arc::new);
        Config::Applied
    }
}

/// A probe for people and for the log: values of headers may be secrets.
pub(super) fn shown(probe: &WorkloadProbe) -> Value {
    let mut value = probe.to_json();
    let headers = value.pointer_mut("/httpGet/httpHeaders").and_then(Value::as_array_mut);
    for header in headers.into_iter().flatten() {
        if !header["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("host")) {
            header["value"] = "***".into();
        }
    }
    value
}

#[cfg(test)]
mod tests;
