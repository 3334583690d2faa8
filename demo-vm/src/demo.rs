//! The processes of the demo, and the actions of its keys.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use kit::app::switched::Behavior;
use kit::envoy::{short_path, workspace};
use kit::vm::discovery::Discovery;
use kit::vm::documents::{GROUP, HOST, PORT};
use kit::vm::envoy_client::{EXAMPLE_PORT, EnvoyClient};
use kit::vm::machine::Machine;
use kit::vm::traffic::Traffic;

pub const MACHINES: usize = 3;
/// The grace period for an agent to reconnect.
pub const GRACE: Duration = Duration::from_secs(3);
/// Pause between two requests to the service.
const PAUSE: Duration = Duration::from_millis(10);
/// Envoy's timeout of a request in milliseconds. Without it, a request to a hanging application would
/// never end.
const TIMEOUT: (&str, &str) = ("x-envoy-upstream-rq-timeout-ms", "2000");

/// All processes of the demo; dropping this kills them.
pub struct Demo {
    pub machines: Vec<Machine>,
    pub client: EnvoyClient,
    pub discovery: Discovery,
    /// The requests sent through Envoy.
    pub traffic: Traffic,
    /// The folder with the logs.
    pub folder: PathBuf,
}

impl Demo {
    /// Starts all processes on five addresses, beginning with `first`.
    ///
    /// # Errors
    /// Names what is in use or missing.
    pub async fn start(first: Ipv4Addr) -> Result<Self, String> {
        let address = |number: u32| IpAddr::from(Ipv4Addr::from_bits(first.to_bits() + number));
        free(&address)?;
        let folder = short_path(&workspace().join("target/demo-vm")).join(first.to_string());
        // Removes the files of an earlier demo.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let grace = format!("{}s", GRACE.as_secs());
        let listener = SocketAddr::new(address(1), EXAMPLE_PORT);
        let outbound = listener.ip().to_string();
        let flags = ["--disconnect-grace", &grace, "--outbound-listeners", &outbound];
        let mut discovery = Discovery::at(address(0), &folder, &[]).flags(&flags);
        let examples = workspace().join("envoy-config/vm");
        let read = |name: &str| {
            std::fs::read_to_string(examples.join(name)).map_err(|error| format!("{name}: {error}"))
        };
        discovery.configure_file("payments.yaml", &read("config/payments.yaml")?);
        discovery.start().await?;
        let mut machines = Vec::new();
        for number in 1..=MACHINES {
            let ip = address(1 + u32::try_from(number).map_err(|error| error.to_string())?);
            let mut machine = Machine::new(&folder, &format!("{GROUP}-{number}"), ip).await;
            machine.report_plaintext(&discovery);
            machine.start_agent().map_err(|error| error.to_string())?;
            machines.push(machine);
        }
        let client =
            EnvoyClient::example(&folder, &read("envoy.yaml")?, discovery.plaintext(), listener).await;
        let traffic = Traffic::start_host(listener, HOST, &[TIMEOUT], PAUSE);
        let folder = folder.canonicalize().unwrap_or(folder);
        Ok(Self { machines, client, discovery, traffic, folder })
    }

    /// Performs the action of a key and describes it; `None` for a key without an action.
    pub async fn press(&mut self, key: char) -> Option<String> {
        let number = usize::try_from(key.to_digit(10)?.checked_sub(1)?).ok()?;
        let machine = self.machines.get_mut(number % MACHINES)?;
        let name = machine.name.clone();
        Some(match number / MACHINES {
            0 => format!("{name}: {}", toggle(machine, Behavior::Failing)),
            1 => format!("{name}: {}", toggle(machine, Behavior::Hanging)),
            2 if machine.has_agent() => {
                machine.kill_agent().await;
                format!("{name}: agent killed (kill -9)")
            }
            2 => match machine.start_agent() {
                Ok(()) => format!("{name}: agent started"),
                Err(error) => format!("{name}: agent cannot be started: {error}"),
            },
            _ => return None,
        })
    }
}

/// Sets the behavior, or back to serving if it is already set.
fn toggle(machine: &Machine, behavior: Behavior) -> &'static str {
    let next = if machine.application.behavior() == behavior { Behavior::Serving } else { behavior };
    machine.application.set_behavior(next);
    match next {
        Behavior::Serving => "application recovered",
        Behavior::Failing => "application responds with 503",
        Behavior::Hanging => "application hangs",
    }
}

/// Checks that every port is free.
fn free(address: &dyn Fn(u32) -> IpAddr) -> Result<(), String> {
    let mut wanted = vec![(0, 15010, "discovery"), (0, 15014, "discovery"), (1, EXAMPLE_PORT, "Envoy")];
    for machine in 2..5 {
        wanted.extend([
            (machine, PORT, "an application"),
            (machine, 15004, "an agent"),
            (machine, 15021, "an agent"),
        ]);
    }
    for (number, port, user) in wanted {
        let address = SocketAddr::new(address(number), port);
        TcpListener::bind(address).map_err(|error| {
            format!("{address} cannot be used ({error}); it is needed by {user}. Use other addresses, for example --addresses 127.0.8.1")
        })?;
    }
    Ok(())
}
