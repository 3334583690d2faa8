//! The demo of virtual machines: discovery, three machines with an application and an agent each, an Envoy that balances over them,
//! and a table of who is healthy and who is asked.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Parser;
use tokio::time::{Instant, MissedTickBehavior};

use kit::terminal::{say, unless_interrupted};

pub mod keys;
pub mod look;
pub mod once;
pub mod stage;
pub mod table;

use keys::Keys;
use look::Watch;
use stage::Stage;

/// Between two looks at Envoy's endpoints.
const LOOK: Duration = Duration::from_millis(50);
/// A table for so many looks.
const LOOKS: u32 = 5;

/// Shows machines that report their health, and an Envoy that asks the healthy ones.
#[derive(Debug, Parser)]
#[command(name = "demo-vm")]
pub struct Arguments {
    /// Make a machine fail, hang and crash by itself, print how long each took, end; fails if something did not happen
    #[arg(long)]
    pub once: bool,
    /// The first of five loopback addresses: of discovery, Envoy and the machines
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::new(127, 0, 7, 1))]
    pub addresses: Ipv4Addr,
}

/// Runs the demo; whether everything happened that should. An interrupt ends it, and all that it started with it.
///
/// # Errors
/// Says what is missing or in the way.
pub async fn run(arguments: Arguments) -> Result<bool, String> {
    let once = arguments.once;
    unless_interrupted(show(arguments), once).await
}

async fn show(arguments: Arguments) -> Result<bool, String> {
    say("starting discovery, three machines and Envoy ...\n");
    let begin = Instant::now();
    let mut stage = Stage::start(arguments.addresses).await?;
    if arguments.once {
        return Ok(once::run(&mut stage, begin).await);
    }
    watch(&mut stage).await;
    Ok(true)
}

/// Shows the table until `q`.
async fn watch(stage: &mut Stage) {
    let mut keys = Keys::listen();
    let mut watch = Watch::new(stage);
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u32.. {
        let key = tokio::select! {
            _ = looks.tick() => None,
            key = keys.next() => Some(key),
        };
        match key {
            Some('q') => return,
            Some(key) => {
                let done = stage.press(key).await;
                watch.note(done);
            }
            None => watch.look(stage).await,
        }
        if round.is_multiple_of(LOOKS) || key.is_some() {
            let table = watch.table(stage).await;
            say(&keys.screen(&table));
        }
    }
}
