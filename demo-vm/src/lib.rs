//! The demo of virtual machines: discovery, three machines with an application and an agent each,
//! an Envoy that balances requests over them, and a table of the health and the requests of each
//! machine.

use std::net::Ipv4Addr;
use std::time::Duration;

use clap::Parser;
use tokio::time::{Instant, MissedTickBehavior};

use kit::terminal::{say, unless_interrupted};

pub mod demo;
pub mod keys;
pub mod observer;
pub mod scripted;
pub mod table;

use demo::Demo;
use keys::Keys;
use observer::Observer;

/// Pause between two polls of Envoy's endpoints.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The table is printed once per this number of polls.
const POLLS_PER_TABLE: u32 = 5;

/// Shows virtual machines that report their health, and an Envoy that sends requests to the healthy
/// ones
#[derive(Debug, Parser)]
#[command(name = "demo-vm")]
pub struct Arguments {
    /// Make a machine fail, hang and crash, print how long Envoy took to follow, and exit; fails if
    /// a step did not take effect
    #[arg(long)]
    pub once: bool,
    /// The first of five consecutive loopback addresses for discovery, Envoy and the machines
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::new(127, 0, 7, 1))]
    pub addresses: Ipv4Addr,
}

/// Runs the demo and returns whether every step took effect. SIGINT ends it together with all its
/// child processes.
///
/// # Errors
/// Names what is missing or in use.
pub async fn run(arguments: Arguments) -> Result<bool, String> {
    let once = arguments.once;
    unless_interrupted(show(arguments), once).await
}

async fn show(arguments: Arguments) -> Result<bool, String> {
    say("starting discovery, three machines and Envoy ...\n");
    let begin = Instant::now();
    let mut demo = Demo::start(arguments.addresses).await?;
    if arguments.once {
        return Ok(scripted::run(&mut demo, begin).await);
    }
    watch(&mut demo).await;
    Ok(true)
}

/// Prints the table until the user presses `q`.
async fn watch(demo: &mut Demo) {
    let mut keys = Keys::listen();
    let mut observer = Observer::new(demo);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in 0_u32.. {
        let key = tokio::select! {
            _ = ticks.tick() => None,
            key = keys.next() => Some(key),
        };
        match key {
            Some('q') => return,
            Some(key) => {
                let done = demo.press(key).await;
                observer.note(done);
            }
            None => observer.poll(demo).await,
        }
        if round.is_multiple_of(POLLS_PER_TABLE) || key.is_some() {
            let table = observer.table(demo).await;
            say(&keys.screen(&table));
        }
    }
}
