//! Simulates generated histories of agents and a discovery server, and checks that the final
//! endpoints are the healthy ones.

use std::process::ExitCode;

use clap::Parser as _;
use simulation::command::{self, Arguments};

fn main() -> ExitCode {
    if command::main(&Arguments::parse()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
