//! Flags of `run` about health checks of a workload on a virtual machine.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// YAML file with one WorkloadGroup, whose probe checks the application on this machine;
    /// reloaded when it changes
    #[arg(long, env = "APP_HEALTH_WORKLOAD_GROUP", value_name = "FILE")]
    pub workload_group: Option<PathBuf>,
    /// Set to `on` if iptables rules redirect this machine's traffic into Envoy. Probes of its own
    /// address are then sent from 127.0.0.6 or ::6, which the rules exclude
    #[arg(long, env = "APP_HEALTH_CAPTURE", value_enum, default_value_t = OnOff::Off)]
    pub capture: OnOff,
    /// Allow probes whose host is another machine
    #[arg(long, env = "APP_HEALTH_ALLOW_REMOTE_PROBES", value_parser = BoolishValueParser::new())]
    pub allow_remote_probes: bool,
    /// Run exec probes that a control plane pushes, not only those of a local file
    #[arg(long, env = "APP_HEALTH_ALLOW_PUSHED_EXEC", value_parser = BoolishValueParser::new())]
    pub allow_pushed_exec: bool,
    /// Whether the workload is healthy only while Envoy is ready; set to `off` if this machine has
    /// no Envoy
    #[arg(long, env = "APP_HEALTH_ENVOY_READINESS", value_enum, default_value_t = OnOff::On)]
    pub envoy_readiness: OnOff,
}

/// An explicit choice for a flag that takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    On,
    Off,
}
