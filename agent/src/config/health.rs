//! From flags and the file of a WorkloadGroup to what is probed, and how.

use std::ffi::OsString;
use std::net::IpAddr;

use probe::OwnPorts;
use workload_health::Checked;

use super::Environment;
use crate::args::{HealthArgs, OnOff};
use crate::exit::Failure;
use crate::health::TargetRules;
use crate::health::group_file::GroupFile;
use crate::health::source::LocalRules;

/// What commands of exec probes see of the environment.
const EXEC_ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// What is probed, and how.
#[derive(Debug, Clone)]
pub struct HealthConfig {
    /// The source of the probe; absent: a control plane is, if there is one.
    pub group: Option<GroupFile>,
    /// Where probes go.
    pub target: TargetRules,
    /// Which are refused.
    pub rules: LocalRules,
    /// Envoy has to be ready before the application is asked.
    pub envoy_readiness: bool,
    /// Names and values.
    pub exec_environment: Vec<(&'static str, OsString)>,
}

impl HealthConfig {
    /// Reads the file, if one is named; warnings beside. A typo in it must not look like a workload without a probe.
    pub(super) fn new(
        args: HealthArgs,
        instance_ip: IpAddr,
        own_ports: &[u16],
        environment: &Environment,
    ) -> Result<(Self, Vec<String>), Failure> {
        let HealthArgs { workload_group, capture, allow_remote_probes, allow_pushed_exec, envoy_readiness } =
            args;
        let rules = LocalRules { own_ports: OwnPorts::new(own_ports.iter().copied()), allow_pushed_exec };
        let (mut group, mut warnings) = (None, Vec::new());
        if let Some(path) = workload_group {
            let flag = format!("--workload-group = {}", path.display());
            let refused = |text: String| Failure::Usage(format!("{flag}: {text}"));
            let Checked { value, warnings: told } = GroupFile::open(path).map_err(refused)?;
            value.group.probe.as_ref().map_or(Ok(()), |probe| rules.check(probe)).map_err(refused)?;
            warnings.extend(told.into_iter().map(|warning| format!("{flag}: {warning}")));
            group = Some(value);
        }
        let seen = |name| environment.get(name).map(|value| (name, value.to_owned()));
        let config = Self {
            group,
            target: TargetRules {
                instance_ip,
                capture: capture == OnOff::On,
                allow_remote: allow_remote_probes,
            },
            rules,
            envoy_readiness: envoy_readiness == OnOff::On,
            exec_environment: EXEC_ENVIRONMENT.into_iter().filter_map(seen).collect(),
        };
        Ok((config, warnings))
    }
}

#[cfg(test)]
mod tests;
