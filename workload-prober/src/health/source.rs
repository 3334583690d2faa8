//! The source of the probe in force: a file on this machine or a control plane. The file takes
//! precedence, and invalid content changes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use probe::{HandlerField, ProxyPorts};
use serde_json::Value;
use serving::watched::Watched;
use tracing::{error, info, warn};
use workload_health::{Checked, WorkloadGroup, WorkloadHandler, WorkloadProbe};

use super::group_file::WorkloadGroupFile;

/// Size limit of a pushed probe as JSON, in bytes.
const PUSH_BYTES: usize = 64 << 10;

/// Restrictions that this machine imposes on probes.
#[derive(Debug, Clone, Default)]
pub struct LocalRules {
    /// Ports of the proxy, including those that were changed by flags.
    pub proxy_ports: ProxyPorts,
    /// True if a control plane may push exec probes.
    pub allow_pushed_exec: bool,
}

impl LocalRules {
    /// Returns an error if `probe` targets a port of the proxy.
    pub fn check(&self, probe: &WorkloadProbe) -> Result<(), String> {
        match probe.handler.network() {
            Some((kind, port)) if self.proxy_ports.contains(port.get()) => {
                Err(format!("spec.probe.{}.port: {port} belongs to the proxy", kind.name()))
            }
            _ => Ok(()),
        }
    }

    fn check_pushed(&self, probe: &WorkloadProbe) -> Result<(), String> {
        if matches!(probe.handler, WorkloadHandler::Exec { .. }) && !self.allow_pushed_exec {
            return Err(
                "spec.probe.exec: rejected, pushed exec probes require --allow-pushed-exec".to_owned()
            );
        }
        self.check(probe)
    }
}

/// The probe in force and its source.
pub(super) struct ProbeSource {
    file: Option<(PathBuf, Watched<Checked<WorkloadGroup>>)>,
    rules: LocalRules,
    probe: Option<Arc<WorkloadProbe>>,
    /// True if the probe never changes.
    is_fixed: bool,
    was_pushed: bool,
    /// True once it was logged that pushed probes are ignored.
    logged_ignored: bool,
    /// Why the newest file or pushed probe is not in force.
    error: Option<String>,
}

enum_table::table! {
    /// Result of evaluating a file or a pushed probe, used as a metric label.
    pub(super) enum ApplyResult(as_str: &'static str) {
        /// The probe in force has changed.
        Applied("applied"),
        Unchanged("unchanged"),
        /// A pushed probe was ignored because this machine configures one, for example by `--workload-group`.
        Ignored("ignored"),
        /// The configuration is invalid, and the previous one stays in force.
        Rejected("refused"),
    }
}

impl ProbeSource {
    pub(super) fn new(file: Option<WorkloadGroupFile>, rules: LocalRules) -> Self {
        let probe = file.as_ref().and_then(|file| file.group.probe.clone()).map(Arc::new);
        let file = file.map(|file| (file.path.clone(), file.watch()));
        Self { file, rules, probe, is_fixed: false, was_pushed: false, logged_ignored: false, error: None }
    }

    /// A probe that does not change. It was checked by the rules.
    pub(super) fn fixed(probe: WorkloadProbe, rules: LocalRules) -> Self {
        Self { probe: Some(Arc::new(probe)), is_fixed: true, ..Self::new(None, rules) }
    }

    pub(super) fn probe(&self) -> Option<&Arc<WorkloadProbe>> {
        self.probe.as_ref()
    }

    /// Returns the source: `file`, `configuration`, `discovery` or `none`.
    pub(super) fn as_str(&self) -> &'static str {
        match (&self.file, self.was_pushed) {
            (Some(_), _) => "file",
            (None, _) if self.is_fixed => "configuration",
            (None, true) => "discovery",
            (None, false) => "none",
        }
    }

    pub(super) fn path(&self) -> Option<String> {
        self.file.as_ref().map(|(path, _)| path.display().to_string())
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Waits until the file has changed; without a file, forever.
    pub(super) async fn changed(&mut self) -> ApplyResult {
        let Some((_, watched)) = &mut self.file else { return std::future::pending().await };
        let found = watched.changed().await;
        self.reload(found)
    }

    fn reload(&mut self, found: Result<Checked<WorkloadGroup>, String>) -> ApplyResult {
        let path = self.path();
        let found = found.and_then(|checked| {
            let probe = checked.value.probe;
            probe.as_ref().map_or(Ok(()), |probe| self.rules.check(probe)).map(|()| (probe, checked.warnings))
        });
        match found {
            Ok((probe, warnings)) => {
                for warning in warnings {
                    warn!(file = path, "{warning}");
                }
                self.apply(probe)
            }
            Err(text) => {
                error!(file = path, "WorkloadGroup rejected, keeping the previous one: {text}");
                self.error = Some(text);
                ApplyResult::Rejected
            }
        }
    }

    /// Applies a probe pushed by a control plane. The inner error is why it was rejected.
    pub(super) fn push(&mut self, probe: Option<&Value>) -> (ApplyResult, Result<(), String>) {
        if self.file.is_some() || self.is_fixed {
            if !std::mem::replace(&mut self.logged_ignored, true) {
                info!("pushed probe ignored because this machine configures one");
            }
            return (ApplyResult::Ignored, Ok(()));
        }
        match probe.map(|probe| self.validate_pushed(probe)).transpose() {
            Ok(probe) => {
                self.was_pushed = true;
                (self.apply(probe), Ok(()))
            }
            Err(text) => {
                if self.error.as_ref() != Some(&text) {
                    error!("pushed probe rejected, keeping the previous one: {text}");
                }
                self.error = Some(text.clone());
                (ApplyResult::Rejected, Err(text))
            }
        }
    }

    fn validate_pushed(&self, value: &Value) -> Result<WorkloadProbe, String> {
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

    fn apply(&mut self, probe: Option<WorkloadProbe>) -> ApplyResult {
        self.error = None;
        if self.probe.as_deref() == probe.as_ref() {
            return ApplyResult::Unchanged;
        }
        self.probe = probe.map(Arc::new);
        ApplyResult::Applied
    }
}

/// Formats a probe for logs and debug output; header values are redacted because they may be
/// secrets.
pub(super) fn redacted(probe: &WorkloadProbe) -> Value {
    let mut value = probe.to_json();
    let handlers = value.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    let lists =
        handlers.filter_map(|handler| handler.get_mut(HandlerField::HttpHeaders.name())?.as_array_mut());
    for header in lists.flatten() {
        if !header["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("host")) {
            header["value"] = "***".into();
        }
    }
    value
}

#[cfg(test)]
mod tests;
