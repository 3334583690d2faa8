//! Measures one agent that probes, sends heartbeats and keeps a stream over mutual TLS.

use std::time::Duration;

use kit::envoy;
use kit::net;
use kit::process::Process;
use kit::report::Row;
use kit::vm::certificates::{Authority, DISCOVERY_NAME};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::machine::Machine;
use tokio::time::{Instant, sleep};

use crate::steady::bytes;
use crate::{Failure, millis, say};

/// Limit for the stream to be established and the probe to be healthy.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time after which the agent asks less often for an Envoy that does not run. Until then, that is most of its CPU
/// time.
const STARTED: Duration = Duration::from_secs(12);
/// Limit for a new configuration to take effect.
const RECONFIGURED: Duration = Duration::from_secs(6);

/// Measures memory and CPU time with one probe per second, over `span`.
pub(crate) async fn measure(span: Duration) -> Result<Vec<Row>, Failure> {
    say("agent");
    let folder = envoy::folder("b-vm-agent");
    let authority = Authority::new();
    let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
    let workload = authority.workload(&folder, GROUP, NAMESPACE, GROUP);
    let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).tls(&files);
    discovery.start().await?;
    let mut machine = Machine::new(&folder, "machine", net::loopback()).await;
    machine.report_tls(&discovery, &workload);
    machine.start_agent()?;
    let begin = Instant::now();
    while discovery.workload(machine.ip).await["condition"]["status"] != "True" {
        if begin.elapsed() > PATIENCE {
            return Err(format!("the agent does not report:\n{}", machine.log()).into());
        }
        sleep(Duration::from_millis(50)).await;
    }
    sleep(STARTED).await;
    let process = Process::new(machine.pid().as_raw().unsigned_abs());
    let (probes, before) = (machine.application.probes().len(), process.cpu());
    sleep(span).await;
    let probes = machine.application.probes().len() - probes;
    let probing = process.cpu() - before;
    if probes == 0 {
        return Err("the application received no probe".into());
    }
    let rss = process.rss();
    // The same agent with rare probes gives the cost of everything else; no Envoy runs here that
    // would answer its polls.
    let mut seldom = probe();
    seldom["initialDelaySeconds"] = 3600.into();
    seldom["periodSeconds"] = 3600.into();
    discovery.configure(&group(&seldom));
    sleep(RECONFIGURED).await;
    let before = process.cpu();
    sleep(span).await;
    let besides = process.cpu() - before;
    let each = millis(probing.saturating_sub(besides)) / f64::from(u32::try_from(probes)?);
    Ok(vec![
        Row::new("agent, memory (RSS) idle, probe and stream", bytes(rss) / 1_048_576.0, "MiB").at_most(7.0),
        Row::new("agent, CPU time for an HTTP probe", each, "ms").at_most(1.0),
        Row::new(
            "agent, CPU time without probes",
            besides.as_secs_f64() / span.as_secs_f64() * 100.0,
            "% of a core",
        ),
    ])
}
