//! What the local server shows about a virtual machine.

use bytes::Bytes;
use serving::page::Table;

/// The views of a virtual machine. An agent for Pods has none.
pub trait MachineView: Send + Sync {
    /// Returns the response body of `GET /debug/vm-health`; `None` if the workload is not probed.
    fn health_json(&self) -> Option<Bytes>;

    /// Returns the response body of `GET /debug/xds`; `None` without the xDS proxy.
    fn xds_json(&self) -> Option<Bytes>;

    /// Returns the response body of `GET /debug/ndsz`; `None` if no DNS queries are answered.
    fn names_json(&self) -> Option<Bytes>;

    /// Returns the tables of the status page about the workload and its discovery server.
    fn tables(&self) -> Vec<Table>;
}
