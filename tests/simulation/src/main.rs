//! Made-up histories of agents and a discovery server: the final endpoints equal the truth.

use std::process::ExitCode;

use clap::Parser as _;
use simulation::command::{self, Arguments};

fn main() -> ExitCode {
    if command::main(&Arguments::parse()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
