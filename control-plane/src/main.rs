//! The binary `app-health`: parse, check, run one command, end with its exit code.

use std::process::ExitCode;

use app_health::args::Command;
use app_health::config::{Environment, InjectConfig, WebhookConfig};
use app_health::exit::{self, Failure};
use app_health::{inject, webhook};

fn main() -> ExitCode {
    let environment = Environment::of_process();
    match environment.args_of_process() {
        Ok(args) => exit::of_command(command(args.command, &environment)),
        Err(error) => exit::of_clap(&error),
    }
}

fn command(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Inject(args) => inject::command::run(InjectConfig::new(args, environment)?),
        Command::Webhook(args) => webhook::run(WebhookConfig::new(args, environment)?),
    }
}
