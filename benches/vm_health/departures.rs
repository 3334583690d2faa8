//! Measures machines that stop in every way, until a real Envoy no longer has their endpoints.
//! Everything runs in a separate network namespace, where packets can be dropped.

use std::time::Duration;

use kit::container_tools;
use kit::envoy;
use kit::net;
use kit::report::Row;
use kit::vm::certificates::{Authority, DISCOVERY_NAME};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, NAMESPACE, group, probe, service};
use kit::vm::envoy_client::{EnvoyClient, Subscription};
use kit::vm::machine::Machine;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use crate::{Failure, say};

/// Pause between two polls of Envoy.
const PACE: Duration = Duration::from_millis(5);
/// Limit for an endpoint to be removed.
const PATIENCE: Duration = Duration::from_secs(60);
/// Heartbeat interval of the agent that is stopped, in seconds.
const HEARTBEAT: f64 = 4.0;
/// The server's default grace period for a reconnection, in seconds.
const GRACE: f64 = 10.0;

/// Needs root, `ip` and `iptables`.
pub(crate) fn measure() -> Result<Vec<Row>, Failure> {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| format!("cannot create a network namespace, which requires root: {error}"))?;
        run("ip", "link set lo up")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut rows = killed_silent_and_clean().await?;
            rows.extend(stopped().await?);
            Ok(rows)
        })
    });
    thread.join().map_err(|_| "the measurement thread panicked")?
}

/// Measures agents that are killed, lose their network, or shut down cleanly.
async fn killed_silent_and_clean() -> Result<Vec<Row>, Failure> {
    say("departures: killed, silent network, clean shutdown");
    let mut fixture = Fixture::start("b-gone", &["--restart-grace", "1s"]).await?;
    let (polite, killed, silent) =
        (fixture.join(false).await?, fixture.join(false).await?, fixture.join(true).await?);

    let begin = Instant::now();
    fixture.machines[polite].signal(Signal::SIGTERM);
    let final_report = fixture.until_gone(polite, begin).await?;

    let begin = Instant::now();
    // Only this machine uses TLS, so the rule drops its packets alone.
    for end in ["--sport", "--dport"] {
        let port = fixture.discovery.secure().port();
        run("iptables", &format!("-I INPUT -p tcp {end} {port} -j DROP"))?;
    }
    let closed = Instant::now();
    fixture.machines[killed].kill_agent().await;
    let closed = fixture.until_gone(killed, closed).await?;
    let silent = fixture.until_gone(silent, begin).await?;
    run("iptables", "-F INPUT")?;
    let row = |name: &str, time: Duration| Row::new(name, time.as_secs_f64(), "s");
    Ok(vec![
        row("clean shutdown (SIGTERM) -> gone", final_report).at_most(1.0),
        row("agent killed, connection closed -> gone", closed).at_most(GRACE + 1.0),
        row("silent network -> gone", silent).at_most(31.0),
    ])
}

/// Measures an agent that is stopped by SIGSTOP while its connection stays open.
async fn stopped() -> Result<Vec<Row>, Failure> {
    say("departures: hung");
    let heartbeat = format!("{HEARTBEAT}s");
    let mut fixture = Fixture::start("b-hung", &["--restart-grace", "1s", "--heartbeat", &heartbeat]).await?;
    let hung = fixture.join(true).await?;
    let begin = Instant::now();
    fixture.machines[hung].signal(Signal::SIGSTOP);
    let gone = fixture.until_gone(hung, begin).await;
    fixture.machines[hung].signal(Signal::SIGCONT);
    let heartbeats = gone?.as_secs_f64() / HEARTBEAT;
    Ok(vec![Row::new("agent stopped -> gone, in heartbeats", heartbeats, "").at_most(3.6)])
}

fn run(program: &str, arguments: &str) -> Result<(), Failure> {
    let output = container_tools::command(program).args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

struct Fixture {
    folder: std::path::PathBuf,
    authority: Authority,
    discovery: Discovery,
    client: EnvoyClient,
    machines: Vec<Machine>,
}

impl Fixture {
    async fn start(name: &str, flags: &[&str]) -> Result<Self, Failure> {
        let folder = envoy::folder(name);
        let authority = Authority::new();
        let files = authority.issue(&folder, "discovery", DISCOVERY_NAME);
        let mut discovery = Discovery::new(&folder, &[group(&probe()), service()]).flags(flags).tls(&files);
        discovery.start().await?;
        let client = EnvoyClient::start(
            &folder,
            "client",
            net::loopback(),
            &Subscription::sotw(discovery.plaintext()),
        )
        .await;
        Ok(Self { folder, authority, discovery, client, machines: Vec::new() })
    }

    /// Starts one more machine and returns its number once Envoy has its endpoint.
    async fn join(&mut self, secure: bool) -> Result<usize, Failure> {
        let number = self.machines.len();
        let mut machine = Machine::new(&self.folder, &format!("m{number}"), net::loopback()).await;
        if secure {
            let files = self.authority.workload(&self.folder, GROUP, NAMESPACE, GROUP);
            machine.report_tls(&self.discovery, &files);
        } else {
            machine.report_plaintext(&self.discovery);
        }
        machine.start_agent()?;
        self.machines.push(machine);
        self.until(number, true).await?;
        // Waits for the acknowledgement and everything else that follows a registration.
        sleep(Duration::from_secs(1)).await;
        Ok(number)
    }

    async fn until_gone(&self, machine: usize, since: Instant) -> Result<Duration, Failure> {
        self.until(machine, false).await?;
        Ok(since.elapsed())
    }

    async fn until(&self, machine: usize, there: bool) -> Result<(), Failure> {
        let endpoint = self.machines[machine].application.address;
        let begin = Instant::now();
        while self.client.endpoints().await.contains(&endpoint) != there {
            if begin.elapsed() > PATIENCE {
                let (machine, discovery) = (self.machines[machine].log(), self.discovery.log());
                return Err(format!("{endpoint} is not {there} in Envoy:\n{machine}\n{discovery}").into());
            }
            sleep(PACE).await;
        }
        Ok(())
    }
}
