//! In a build without virtual machines: the flags that start their tasks, so that they are rejected
//! with a reason. The others are unknown.

use std::ffi::OsString;

#[derive(Debug, clap::Args)]
pub struct VmArgs {
    #[arg(long, env = "APP_HEALTH_WORKLOAD_GROUP", hide = true)]
    pub workload_group: Option<OsString>,
    #[arg(long, env = "APP_HEALTH_DISCOVERY", hide = true)]
    pub discovery: Option<OsString>,
}
