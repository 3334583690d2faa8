//! Counts the endpoints that are removed when the agents of all machines are restarted within a second.

use std::time::Duration;

use kit::envoy;
use kit::net;
use kit::report::Row;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{CLUSTER, NAMESPACE, group, probe, service};
use kit::vm::fleet::EdsClient;
use kit::vm::machine::Machine;
use nix::sys::signal::Signal;
use tokio::time::sleep;

use crate::{Failure, say};

const MACHINES: u32 = 100;
/// Time in which all agents get the signal.
const SPAN: Duration = Duration::from_secs(1);
/// Limit for all machines to be endpoints.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time for which endpoints are observed after the last agent has a verdict.
const AFTERWARDS: Duration = Duration::from_secs(15);

pub(crate) async fn measure() -> Result<Vec<Row>, Failure> {
    let folder = envoy::folder("b-restarts");
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]);
    discovery.start().await?;
    let client = EdsClient::start(discovery.plaintext(), NAMESPACE, vec![CLUSTER.to_owned()]);
    let mut machines = Vec::new();
    for number in 0..MACHINES {
        let mut machine = Machine::new(&folder, &format!("m{number}"), net::loopback()).await;
        machine.report_plaintext(&discovery);
        machine.start_agent()?;
        machines.push(machine);
    }
    until_all(&client).await?;
    let mut removed = async |signal: Signal| {
        say(&format!("restart of {MACHINES} agents by {signal}"));
        sleep(AFTERWARDS).await;
        let before = client.state().removals.len();
        for machine in &mut machines {
            machine.signal(signal);
            sleep(SPAN / MACHINES).await;
        }
        for machine in &mut machines {
            machine.agent_end().await;
            machine.start_agent()?;
        }
        sleep(AFTERWARDS).await;
        until_all(&client).await?;
        let removals: usize = client.state().removals.iter().skip(before).map(|removal| removal.lost).sum();
        Ok::<_, Failure>(f64::from(u32::try_from(removals)?))
    };
    let restarted = removed(Signal::SIGUSR2).await?;
    let terminated = removed(Signal::SIGTERM).await?;
    Ok(vec![
        Row::new(format!("restart of {MACHINES} agents, SIGUSR2: endpoints removed"), restarted, "")
            .at_most(0.0),
        Row::new(format!("restart of {MACHINES} agents, SIGTERM: endpoints removed"), terminated, "")
            .at_most(25.0),
    ])
}

async fn until_all(client: &EdsClient) -> Result<(), Failure> {
    let is_complete = |total: usize| u32::try_from(total).is_ok_and(|total| total == MACHINES);
    match client.until(PATIENCE, |state| is_complete(state.total())).await {
        Some(_) => Ok(()),
        None => Err(format!("{} of {MACHINES} endpoints", client.state().total()).into()),
    }
}
