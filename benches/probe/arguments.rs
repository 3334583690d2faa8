//! Command line arguments of the benchmark `probe`.

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::Parser;

/// Measures the cost of a probe
#[derive(Clone, Debug, Parser)]
pub(crate) struct Arguments {
    /// Number of rounds; each ratio compares figures of the same round
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Probes in a round for each route
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) probes: u32,
    /// HOST:PORT of a running application that answers at /, so that every route leads to the
    /// application that pilot-agent probes; by default a small one is started
    #[arg(long)]
    pub(crate) application: Option<SocketAddr>,
    /// [HOST:]PORT[/PATH] of a running status server of Istio's pilot-agent; HOST defaults to
    /// 127.0.0.1, PATH to /app-health/app/readyz
    #[arg(long, env = "PILOT_AGENT")]
    pub(crate) pilot_agent: Option<Target>,
    /// Passed by cargo bench; ignored
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

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
