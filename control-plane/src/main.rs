//! The binary `app-health`: parses the command line, runs one command and returns its exit code.

use std::process::ExitCode;

use app_health::args::{Args, Command};
use app_health::config::{ExplainConfig, InjectConfig, LintConfig, WebhookConfig, WorkloadsConfig};
use app_health::discovery::command::DiscoveryConfig;
use app_health::{discovery, exit, explain, inject, lint, webhook, workloads};
use serving::environment::Environment;
use serving::exit::Failure;

fn main() -> ExitCode {
    let environment = Environment::from_process();
    match environment.parse_args::<Args>() {
        Ok(args) => exit::of_command(command(args.command, &environment)),
        Err(error) => exit::of_clap(&error),
    }
}

/// Runs a command and returns its exit code.
fn command(command: Command, environment: &Environment) -> Result<u8, Failure> {
    match command {
        Command::Inject(args) => inject::run(InjectConfig::new(args, environment)?)?,
        Command::Lint(args) => lint::run(LintConfig::new(*args)?)?,
        Command::Explain(args) => return explain::run(ExplainConfig::new(args)?),
        Command::Webhook(args) => webhook::run(WebhookConfig::new(args, environment)?)?,
        Command::Discovery(args) => discovery::command::run(DiscoveryConfig::new(*args, environment)?)?,
        Command::Workloads(args) => workloads::run(WorkloadsConfig::new(args)?)?,
    }
    Ok(0)
}
