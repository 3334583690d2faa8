//! The Envoy process: its files, start and stop, drain, restart policy, and the polls that show whether
//! it is ready or hangs.

pub mod config_source;
pub mod drain;
pub mod envoy_files;
pub mod exec_with_pdeathsig;
pub mod leftover;
pub mod log_forwarder;
pub mod one_shot;
pub mod poller;
pub mod process;
pub mod random;
pub mod restart_policy;
pub mod signals;
pub mod state_dir;
pub mod supervisor;
