//! The recipe `soak`.

use std::process::ExitCode;

use attack::command::{SoakArguments, soak};
use clap::Parser as _;

fn main() -> ExitCode {
    attack::program::run("soak", || soak(SoakArguments::parse()))
}
