//! What all tasks of the agent share: the readiness state with its subscribers, the metrics, and the
//! processes that a task waits for.

pub mod awaited_pids;
pub mod exit_reason;
pub mod metrics;
pub mod proc_stat;
pub mod state;
