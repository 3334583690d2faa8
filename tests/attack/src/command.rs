//! The command lines of the recipes `attack` and `soak`.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use kit::envoy::workspace;
use kit::terminal::say;

use crate::attacks::sidecar::Extent;
use crate::attacks::{self, Strength};
use crate::measurement::{Measurement, Phases};
use crate::{raise_descriptor_limit, report, soak};

/// Random seeds are below this, so that they are easy to copy.
const SEEDS: u64 = 1_000_000_000;

/// What is attacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    Webhook,
    Discovery,
    Sidecar,
}

/// What answers probes in the sidecar: a form of the filter, or the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Native,
    Wasm,
    Agent,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Wasm => "wasm",
            Self::Agent => "agent",
        }
    }
}

/// Runs hostile clients against the shipped configuration, on this machine only, and honest clients
/// beside them. Fails if an honest request is lost or gets another response than without the attack, or if
/// an attack costs more memory or lines of log than a bar allows
#[derive(Debug, Parser)]
#[command(name = "attack")]
pub struct AttackArguments {
    /// What is attacked; by default everything
    #[arg(value_enum)]
    targets: Vec<Target>,
    /// Number of connections of each hostile address
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..=4000))]
    connections: u16,
    /// Length of each attack
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// What answers probes; by default the native form of the filter, then the agent, and wasm for the attacks
    /// that reach the filter
    #[arg(long, value_enum)]
    form: Option<Form>,
}

/// Runs the attacks and returns whether no honest request was lost or changed, and each bar holds.
///
/// # Errors
/// Names what cannot be started or written.
pub async fn attack(arguments: AttackArguments) -> Result<bool, String> {
    raise_descriptor_limit()?;
    let AttackArguments { targets, connections, seconds, form } = arguments;
    let wants = |target: Target| targets.is_empty() || targets.contains(&target);
    let strength = Strength { connections: usize::from(connections) };
    let phases = Phases::new(Duration::from_secs(seconds.into()));
    let mut measurements: Vec<Measurement> = Vec::new();
    let mut done = |measurement: Measurement| {
        say(&format!("{}: {} wrong\n", measurement.name(), measurement.wrong()));
        for example in &measurement.examples {
            say(&format!("  {example}\n"));
        }
        for bar in measurement.broken() {
            say(&format!("  bar: {bar}\n"));
        }
        measurements.push(measurement);
    };
    if wants(Target::Webhook) {
        attacks::webhook::run(strength, phases, &mut done).await;
    }
    if wants(Target::Discovery) {
        attacks::discovery::run(strength, phases, &mut done).await?;
    }
    if wants(Target::Sidecar) {
        let forms = match form {
            Some(form) => vec![(form, Extent::All)],
            None => {
                vec![(Form::Native, Extent::All), (Form::Agent, Extent::All), (Form::Wasm, Extent::Filter)]
            }
        };
        for (form, extent) in forms {
            attacks::sidecar::run(form.name(), extent, strength, phases, &mut done).await;
        }
        attacks::sidecar::run_other_ports(strength, phases, &mut done).await;
    }
    let file = report::write(&workspace().join("target"), "attack.json", &report::json(&measurements));
    let file = file.map_err(|error| format!("target/attack.json: {error}"))?;
    let wrong: u64 = measurements.iter().map(Measurement::wrong).sum();
    let broken: usize = measurements.iter().map(|measurement| measurement.broken().len()).sum();
    let (honest, costs) = (report::honest(&measurements), report::costs(&measurements));
    say(&format!("\n{honest}\n\n{costs}\n\n{}\n\n{NOTES}\n", report::listeners(&measurements)));
    say(&format!("{wrong} honest requests lost or changed, {broken} bars do not hold; {}\n", file.display()));
    Ok(wrong == 0 && broken == 0)
}

const NOTES: &str = "\
before, during, after: honest requests / lost ones, p50 and p99 in milliseconds
changed: honest requests whose response was not the expected one, in all phases
connections: of all hostile addresses, the most at the same time, of all attempts; held: the most descriptors of the attacked
  process, besides those without an attack
MiB: memory of each attacked process without mapped files, before the first attack and at most during this one
log KiB: in a minute, or in the attack if that is shorter
hostile and honest clients run on the machine of what they attack, and compete with it for its cores";

/// Runs honest and hostile clients with random faults, and checks every verdict, and that memory and
/// descriptors do not grow
#[derive(Debug, Parser)]
#[command(name = "soak")]
pub struct SoakArguments {
    /// Length of the run
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1440))]
    minutes: u32,
    /// The seed of the faults. Default: a random one, which is printed
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the soak test and returns whether it found nothing.
///
/// # Errors
/// Names what cannot be started or written.
pub async fn soak(arguments: SoakArguments) -> Result<bool, String> {
    raise_descriptor_limit()?;
    let SoakArguments { minutes, seed } = arguments;
    let seed = seed.unwrap_or_else(|| fastrand::u64(..SEEDS));
    say(&format!("seed: {seed}\n"));
    soak::run(seed, Duration::from_secs(60) * minutes).await
}
