//! The command `app-health discovery`, which starts the crate `discovery-server`.

pub mod command;
