//! The clients that send the probes.

use std::io::{Error, Result};
use std::time::Duration;

use kit::oracle::{ProbeResult, Question};
use serde_json::json;

use crate::caller::Caller;
use crate::route::Target;
use crate::setup::Setup;

/// Kubelet's deadline: one second more than the declared timeout.
const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Client {
    Kubelet,
    /// The small client of this benchmark, see [`Caller`].
    Light,
}

impl Client {
    /// Sends `probes` requests in sequence and returns the duration of each in microseconds.
    pub(crate) async fn ask(self, setup: &Setup, target: &Target, probes: u32) -> Result<Vec<f64>> {
        let latencies = match self {
            Self::Kubelet => kubelet(setup, target, probes).await?,
            Self::Light => {
                let caller = Caller::new(target.address, &target.path);
                (0..probes).map(|_| caller.ask(200)).collect::<Result<_>>()?
            }
        };
        Ok(latencies.into_iter().map(|latency| latency.as_secs_f64() * 1e6).collect())
    }
}

async fn kubelet(setup: &Setup, target: &Target, probes: u32) -> Result<Vec<Duration>> {
    let handler = json!({"httpGet": {"port": target.address.port(), "path": target.path}});
    let question = Question { repeat: probes, ..Question::once(target.address.ip(), TIMEOUT, handler) };
    let answer = setup.oracle.ask(question).await.map_err(Error::other)?;
    if answer.results != [(ProbeResult::Success, u64::from(probes))].into() {
        let Target { address, path } = target;
        return Err(Error::other(format!("{address}{path}: {:?}, {}", answer.results, answer.output)));
    }
    Ok(answer.latencies)
}
