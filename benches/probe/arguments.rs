//! What is measured, and how often.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::Parser;

/// Measures what a probe costs
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Rounds; a ratio is that of one round
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Probes of each way in a round
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) probes: u32,
    /// HOST:PORT of an application that runs already, with an answer at /, so that every way leads to the one that
    /// pilot-agent asks; without it, a small one of our own
    #[arg(long)]
    pub(crate) application: Option<SocketAddr>,
    /// [HOST:]PORT[/PATH] of a status server that runs already, Istio's pilot-agent; 127.0.0.1 and
    /// /app-health/app/readyz if not said
    #[arg(long, env = "PILOT_AGENT")]
    pub(crate) pilot_agent: Option<Target>,
    /// What cargo adds
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

/// Where is asked, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, path: &str) -> Self {
        Self { address, path: path.to_owned() }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (authority, path) = match text.find('/') {
            Some(slash) => text.split_at(slash),
            None => (text, "/app-health/app/readyz"),
        };
        let port = authority.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let address = port.or_else(|_| authority.parse());
        match address {
            Ok(address) => Ok(Self::new(address, path)),
            Err(_) => Err(format!("{authority:?} is neither PORT nor HOST:PORT")),
        }
    }
}
