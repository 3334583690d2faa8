//! Validated configuration of health checks on a virtual machine, from the flags and the
//! WorkloadGroup file.

use std::net::IpAddr;

use probe::ProxyPorts;
use workload_health::Checked;

use super::Environment;
use crate::args::{HealthArgs, OnOff};
use agent_output::exit::Failure;
use workload_prober::group_file::WorkloadGroupFile;
use workload_prober::source::LocalRules;
use workload_prober::{HealthConfig, TargetRules};

/// Environment variables that commands of exec probes inherit.
const EXEC_ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// Reads the WorkloadGroup file, if one is set, and returns the configuration with its
/// warnings. An invalid file is an error, because it must not be mistaken for a workload
/// without a probe.
pub(super) fn health_config(
    args: HealthArgs,
    instance_ip: IpAddr,
    proxy_ports: &[u16],
    environment: &Environment,
) -> Result<(HealthConfig, Vec<String>), Failure> {
    let HealthArgs { workload_group, capture, allow_remote_probes, allow_pushed_exec, envoy_readiness } =
        args;
    let rules = LocalRules { proxy_ports: ProxyPorts::new(proxy_ports.iter().copied()), allow_pushed_exec };
    let (mut group, mut warnings) = (None, Vec::new());
    if let Some(path) = workload_group {
        let flag = format!("--workload-group = {}", path.display());
        let refused = |text: String| Failure::Usage(format!("{flag}: {text}"));
        let Checked { value, warnings: told } = WorkloadGroupFile::open(path).map_err(refused)?;
        value.group.probe.as_ref().map_or(Ok(()), |probe| rules.check(probe)).map_err(refused)?;
        warnings.extend(told.into_iter().map(|warning| format!("{flag}: {warning}")));
        group = Some(value);
    }
    let seen = |name| environment.get(name).map(|value| (name, value.to_owned()));
    let config = HealthConfig {
        group,
        probe: None,
        is_reported: true,
        target: TargetRules { instance_ip, capture: capture == OnOff::On, allow_remote: allow_remote_probes },
        rules,
        envoy_readiness: envoy_readiness == OnOff::On,
        exec_environment: EXEC_ENVIRONMENT.into_iter().filter_map(seen).collect(),
    };
    Ok((config, warnings))
}

#[cfg(test)]
mod tests;
