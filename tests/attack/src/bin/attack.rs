//! The recipe `attack`.

use std::process::ExitCode;

use attack::command::{AttackArguments, attack};
use clap::Parser as _;

fn main() -> ExitCode {
    attack::program::run("attack", || attack(AttackArguments::parse()))
}
