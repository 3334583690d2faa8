//! Flags of `run` that only virtual machines need.

mod discovery;
mod health;
mod values;

pub use discovery::{DiscoveryArgs, Xds};
pub use health::{HealthArgs, OnOff};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Virtual machines (the agent for Pods is built without)")]
pub struct VmArgs {
    #[command(flatten)]
    pub health: HealthArgs,
    #[command(flatten)]
    pub discovery: DiscoveryArgs,
}
