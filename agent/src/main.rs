//! The binary `app-health-agent`: it parses and validates the command line, runs one command and
//! exits with its code.

use std::process::ExitCode;

use agent_output::exit::{self, Failure};
use agent_output::log;
use app_health_agent::args::{Args, Command};
use app_health_agent::config::{BootstrapConfig, Environment, RunConfig, WaitConfig};
#[cfg(feature = "vm")]
use app_health_agent::istio;
use app_health_agent::{app, cli, wait};
use envoy_process::exec_with_pdeathsig;

fn main() -> ExitCode {
    #[cfg(feature = "vm")]
    xds_client::allocator::use_one_heap();
    let environment = Environment::from_process();
    #[cfg(feature = "vm")]
    if let Some(failure) = istio::exec_other_commands(&environment) {
        return exit::of_command(Err(failure), None);
    }
    let args = match environment.parse_args::<Args>() {
        Ok(args) => args,
        Err(error) => {
            log::set_format(log::requested_format(
                Environment::words(),
                environment.get("APP_HEALTH_LOG_FORMAT"),
            ));
            return exit::of_clap(&error);
        }
    };
    if let Command::Run(run) = &args.command {
        log::set_format(run.log_format);
    }
    let termination_message = match &args.command {
        Command::Wait(wait) => wait.termination_message.clone(),
        _ => None,
    };
    exit::of_command(command(args.command, &environment), termination_message.as_deref())
}

fn command(command: Command, environment: &Environment) -> Result<(), Failure> {
    match command {
        Command::Run(args) => app::run(RunConfig::new(*args, environment)?),
        Command::Bootstrap(args) => app::bootstrap(BootstrapConfig::new(*args, environment)?),
        Command::Wait(args) => wait::run(WaitConfig::new(args, environment)),
        Command::Drain(args) => cli::drain::run(&args),
        Command::Undrain(args) => cli::undrain::run(&args),
        Command::Quit(args) => cli::quit::run(&args),
        #[cfg(feature = "vm")]
        Command::Proxy(args) => istio::proxy(args, environment),
        #[cfg(feature = "vm")]
        Command::Request(args) => cli::request::run(args),
        #[cfg(feature = "vm")]
        Command::Copy(args) => cli::copy::run(&args),
        Command::Launch { parent, record, command } => {
            exec_with_pdeathsig::run(parent, record.as_deref(), &command)
        }
    }
}
