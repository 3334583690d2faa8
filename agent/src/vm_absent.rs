//! The interface of the module `vm` in a build for Pods, where kubelet probes the application.

use std::sync::Arc;

use bytes::Bytes;
use serving::page::Table;

use crate::awaited_pids::AwaitedPids;
use crate::exit::Failure;
use crate::metrics::Metrics;
use crate::state::AgentState;

#[derive(Debug)]
pub struct VmConfig;

impl VmConfig {
    pub fn requires_envoy(&self) -> bool {
        true
    }
}

pub struct VmTasks;

#[derive(Debug, Clone)]
pub struct VmView;

pub fn start(
    _: VmConfig,
    _: &Arc<AgentState>,
    _: &AwaitedPids,
    _: &Arc<Metrics>,
) -> Result<(VmView, VmTasks), Failure> {
    Ok((VmView, VmTasks))
}

impl VmView {
    pub fn to_json(&self) -> Option<Bytes> {
        None
    }

    pub fn xds_json(&self) -> Option<Bytes> {
        None
    }

    pub fn tables(&self) -> Vec<Table> {
        Vec::new()
    }
}

impl VmTasks {
    pub async fn failure(&mut self) -> Failure {
        std::future::pending().await
    }

    pub async fn finish(self) -> Result<(), Failure> {
        Ok(())
    }
}
