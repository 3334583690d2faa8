//! The flags about the health of a workload on a virtual machine: what is probed, and how.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::BoolishValueParser;

/// Flags of `run`.
#[derive(Debug, clap::Args)]
pub struct HealthArgs {
    /// YAML with one WorkloadGroup, whose probe asks the application of this machine; read again when it changes
    #[arg(long, env = "APP_HEALTH_WORKLOAD_GROUP", value_name = "FILE")]
    pub workload_group: Option<PathBuf>,
    /// Is this machine's traffic redirected into Envoy? Then probes of its own address leave from 127.0.0.6 or ::6, which the rules
    /// let pass
    #[arg(long, env = "APP_HEALTH_CAPTURE", value_enum, default_value_t = OnOff::Off)]
    pub capture: OnOff,
    /// A probe's host may be another machine
    #[arg(long, env = "APP_HEALTH_ALLOW_REMOTE_PROBES", value_parser = BoolishValueParser::new())]
    pub allow_remote_probes: bool,
    /// Run exec probes that come from a control plane, and not from a file of this machine
    #[arg(long, env = "APP_HEALTH_ALLOW_PUSHED_EXEC", value_parser = BoolishValueParser::new())]
    pub allow_pushed_exec: bool,
    /// Does the workload need Envoy's readiness to be healthy? `off` where this machine has no Envoy
    #[arg(long, env = "APP_HEALTH_ENVOY_READINESS", value_enum, default_value_t = OnOff::On)]
    pub envoy_readiness: OnOff,
}

/// A choice that has a word for either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// Yes.
    On,
    /// No.
    Off,
}
