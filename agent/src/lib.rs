//! `app-health-agent` runs beside one Envoy. It renders Envoy's bootstrap, starts Envoy, reports on
//! port 15021 whether Envoy is ready, delays applications until then, and drains Envoy. In a Pod it
//! does not probe the application; the filter inside Envoy does. On a virtual machine, where there
//! is no kubelet that starts probes, the agent probes the application itself.

pub mod address;
pub mod app;
pub mod args;
pub mod awaited_pids;
pub mod bootstrap;
pub mod cli;
pub mod config;
pub mod declared_probe;
pub mod drain;
pub mod envoy;
pub mod envoy_files;
pub mod envoy_version;
pub mod exec_with_pdeathsig;
pub mod exit;
pub mod filter_choice;
pub mod http_client;
pub mod json_line;
pub mod leftover;
pub mod local_peer;
pub mod local_server;
pub mod log;
pub mod machine;
pub mod metrics;
pub mod output;
pub mod page;
pub mod poller;
pub mod proc_stat;
pub mod process_history;
pub mod program;
pub mod random;
pub mod readiness;
pub mod readiness_server;
pub mod restart_policy;
pub mod scrape;
pub mod signals;
pub mod state;
pub mod state_dir;
pub mod stderr;
pub mod supervisor;
pub mod tasks;
#[cfg_attr(not(feature = "vm"), path = "vm_absent.rs")]
pub mod vm;
pub mod wait;
