//! The components of a soak test, and what a fault does to them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::probe_listener;
use kit::load::kubelet_request;
use kit::sidecar::{Builder, Sidecar};
use kit::vm::fleet::{LoadSize, LoadTest, documents};
use kit::{net, wait};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::fault::Fault;
use crate::addresses;
use crate::attacks::sidecar::{FAST, as_shipped};
use crate::attacks::{discovery, get, health_checks, keep_alive, webhook};
use crate::honest::HonestClient;
use crate::hostile::{HostileClients, Then};
use crate::request::Expectation;
use crate::webhook::{Webhook, head};

const FAILING: &str = "/app-health/failing/readyz";
const SIZE: LoadSize = LoadSize { agents: 12, services: 3, arrivals: 20, heartbeat: Duration::from_secs(5) };
/// The time in which endpoints must follow the health of the machines.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time that a slow application needs for a response.
const SLOW_TIME: Duration = Duration::from_millis(300);
/// The timeout of kubelet, a second above that of the probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The process ID of each role.
pub(super) type Pids = Arc<Mutex<BTreeMap<&'static str, u32>>>;

/// What is correct for the requests that faults affect.
struct Expectations {
    /// Probes of the application that changes.
    application: Arc<Expectation>,
    /// Probes of an application that always fails.
    failing: Arc<Expectation>,
    /// The readiness of the sidecar.
    sidecar: Arc<Expectation>,
    /// Health checks of discovery.
    discovery: Arc<Expectation>,
}

pub(super) struct System {
    sidecar: Sidecar,
    node: IpAddr,
    /// The address of the application that changes; `None` if it does not run.
    address: SocketAddr,
    application: Option<CountedApp>,
    _failing: CountedApp,
    webhook: Webhook,
    load: LoadTest,
    /// The number of endpoints that had a reason to be removed.
    removed: usize,
    expectations: Expectations,
    pids: Pids,
}

impl System {
    pub(super) async fn start() -> Result<Self, String> {
        let builder = Builder::new("soak");
        let (ip, node) = (builder.ip, net::loopback());
        let application = CountedApp::start(ip, Habit::status(200));
        let failing = CountedApp::start(ip, Habit::status(503));
        let http = |app: &CountedApp| json!({"httpGet": {"port": app.port()}});
        let table = json!({FAST: http(&application), FAILING: http(&failing)}).to_string();
        // Envoy is killed more often than the shipped limit allows.
        let restarts = ["--envoy-restart", "always"];
        let sidecar = as_shipped(builder, node, &table).args(&restarts).start_plain();
        sidecar.until(200, "ready").await;
        let system = Self {
            address: application.address,
            application: Some(application),
            _failing: failing,
            sidecar,
            node,
            webhook: Webhook::start("soak-webhook", &[]).await,
            load: LoadTest::start("soak-discovery", SIZE).await?,
            removed: 0,
            expectations: Expectations {
                application: Expectation::status(200),
                failing: Expectation::status(503),
                sidecar: Expectation::status(200),
                discovery: Expectation::status(200),
            },
            pids: Pids::default(),
        };
        system.record_pids();
        Ok(system)
    }

    pub(super) fn pids(&self) -> Pids {
        Arc::clone(&self.pids)
    }

    fn record_pids(&self) {
        let pid = |pid: nix::unistd::Pid| pid.as_raw().unsigned_abs();
        *self.pids.lock().expect("the mutex is not poisoned") = BTreeMap::from([
            ("agent", pid(self.sidecar.pid())),
            ("Envoy", pid(self.sidecar.envoy_pid())),
            ("webhook", self.webhook.pid()),
            ("discovery", pid(self.load.discovery.pid())),
        ]);
    }

    pub(super) fn honest(&self) -> Vec<HonestClient> {
        let listener = probe_listener(self.sidecar.ip);
        let probe = |path: &str, expectation: &Arc<Expectation>| {
            let mut client = get("probes", self.node, listener, path);
            client.request.deadline = PROBE_TIMEOUT;
            client.request.expectation = Arc::clone(expectation);
            client
        };
        let mut ready = get("sidecar", self.node, self.sidecar.ready_address(), "/healthz/ready");
        ready.request.expectation = Arc::clone(&self.expectations.sidecar);
        let mut clients = vec![
            probe(FAST, &self.expectations.application),
            probe(FAILING, &self.expectations.failing),
            ready,
        ];
        for mut client in health_checks(self.node, self.load.discovery.monitoring()) {
            client.row = "discovery";
            client.request.expectation = Arc::clone(&self.expectations.discovery);
            clients.push(client);
        }
        clients.extend(webhook::honest(&self.webhook));
        clients
    }

    /// Returns fewer hostile clients than an attack has, but of every kind.
    pub(super) fn hostile(&self) -> Vec<HostileClients> {
        let listener = probe_listener(self.sidecar.ip);
        let idle = HostileClients {
            sources: addresses(2),
            address: listener,
            connections: 50,
            per_second: 20,
            tls: None,
            bytes: Vec::new(),
            then: Then::Wait,
        };
        let at = |address: SocketAddr, bytes: Vec<u8>| HostileClients { address, bytes, ..idle.clone() };
        let metrics = "/stats/prometheus";
        let over_tls = |bytes: Vec<u8>| HostileClients {
            tls: Some(self.webhook.tls()),
            connections: 20,
            ..at(self.webhook.address(), bytes)
        };
        let kept = |address: SocketAddr| at(address, keep_alive(address, "/metrics"));
        vec![
            HostileClients {
                sources: addresses(4),
                connections: 8,
                then: Then::Close { after: Duration::ZERO },
                ..at(listener, kubelet_request(listener, FAST))
            },
            HostileClients {
                connections: 4,
                then: Then::ReadSlowly,
                ..at(listener, keep_alive(listener, metrics))
            },
            kept(self.webhook.monitoring()),
            over_tls(format!("{}{{", head(1000)).into_bytes()),
            HostileClients {
                connections: 2,
                then: Then::send_blanks(64 << 10, Duration::from_millis(200)),
                ..over_tls(head(8 << 20).into_bytes())
            },
            kept(self.load.discovery.monitoring()),
            discovery::handshakes(&self.load, 50, 20),
            idle,
        ]
    }

    /// Injects a fault, keeps it for a while, and repairs it.
    ///
    /// # Errors
    /// Says what did not recover, or which endpoints were lost.
    pub(super) async fn suffer(
        &mut self,
        fault: Fault,
        hold: Duration,
        random: &mut Rng,
    ) -> Result<(), String> {
        match fault {
            Fault::ApplicationDies => self.change_application(None, 502, hold).await,
            Fault::ApplicationHangs => self.change_application(Some(Habit::Hang), 504, hold).await,
            Fault::ApplicationSlow => {
                let slow =
                    Habit::AnswerAfter(SLOW_TIME, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into());
                self.change_application(Some(slow), 200, hold).await;
            }
            Fault::ApplicationFails => {
                self.change_application(Some(Habit::status(503)), 503, hold).await;
            }
            Fault::EnvoyKilled => self.replace_envoy(Signal::SIGKILL).await,
            Fault::EnvoyHangs => self.replace_envoy(Signal::SIGSTOP).await,
            Fault::DiscoveryRestarts | Fault::DiscoveryKilled => {
                self.expectations.discovery.set(None);
                if fault == Fault::DiscoveryKilled {
                    self.load.discovery.kill().await;
                } else {
                    self.load.discovery.stop().await;
                }
                sleep(hold).await;
                self.load.discovery.start().await?;
                self.expectations.discovery.set(Some(200));
            }
            Fault::InvalidConfiguration => {
                let documents = documents(SIZE.services);
                let document = &documents[random.usize(..documents.len())];
                let text =
                    |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
                let name = format!("{}-{}.yaml", text("/kind"), text("/metadata/name"));
                self.load.discovery.configure_file(&name, "kind: ServiceEntry\nspec: [\n");
                sleep(hold).await;
                self.load.discovery.configure(document);
            }
            Fault::InvalidCertificate => {
                self.webhook.break_certificate();
                sleep(hold).await;
                self.webhook.renew_certificate();
            }
            Fault::MachineFails => {
                let machine = random.u32(..SIZE.agents);
                self.load.fleet.set_healthy(machine, false);
                self.removed += 1;
                self.load.until_endpoints_match(PATIENCE).await?;
                sleep(hold).await;
                let commits = self.commits().await;
                self.load.fleet.set_healthy(machine, true);
                // A recovery that is not stored yet is lost if discovery is killed next.
                wait::until("the recovery is stored", async || self.commits().await > commits).await;
            }
        }
        self.record_pids();
        self.check_endpoints().await
    }

    /// Returns how often discovery has written its store.
    async fn commits(&self) -> u64 {
        let metrics = self.load.discovery.metrics().await;
        let mut lines = metrics.lines();
        let count =
            lines.find_map(|line| line.strip_prefix("app_health_discovery_store_commit_seconds_count "));
        count.and_then(|count| count.parse().ok()).unwrap_or_default()
    }

    /// Replaces the application for a while; `None`: nothing listens on its port.
    async fn change_application(&mut self, habit: Option<Habit>, status: u16, hold: Duration) {
        self.expectations.application.set(None);
        self.start_application(habit).await;
        self.expectations.application.set(Some(status));
        sleep(hold).await;
        self.expectations.application.set(None);
        self.start_application(Some(Habit::status(200))).await;
        self.expectations.application.set(Some(200));
    }

    async fn start_application(&mut self, habit: Option<Habit>) {
        self.application = None;
        let what = format!("{} is closed", self.address);
        wait::until(&what, async || TcpStream::connect(self.address).await.is_err()).await;
        if let Some(habit) = habit {
            let what = || format!("{} can be bound", self.address);
            let start = async || CountedApp::at(self.address, habit.clone()).ok();
            self.application = Some(wait::until_some(what, start).await);
        }
    }

    /// Sends a signal after which the agent starts another Envoy, and waits for it.
    async fn replace_envoy(&self, signal: Signal) {
        let Expectations { application, failing, sidecar, .. } = &self.expectations;
        [application, failing, sidecar].into_iter().for_each(|expectation| expectation.set(None));
        let before = self.verbose().await["epoch"].clone();
        kill(self.sidecar.envoy_pid(), signal).expect("Envoy runs");
        let what = || format!("Envoy is ready again:\n{}", self.sidecar.log());
        wait::until_or(what, async || {
            let now = self.verbose().await;
            now["ready"] == true && now["epoch"] != before
        })
        .await;
        application.set(Some(200));
        failing.set(Some(503));
        sidecar.set(Some(200));
    }

    async fn verbose(&self) -> Value {
        serde_json::from_str(&self.sidecar.ready("?verbose").await.text()).unwrap_or_default()
    }

    /// Waits until the endpoints are those of the healthy machines, and checks that no other one was
    /// removed on the way.
    async fn check_endpoints(&mut self) -> Result<(), String> {
        self.load.until_endpoints_match(PATIENCE).await?;
        let removed: usize = self.load.eds_client.state().removals.iter().map(|removal| removal.lost).sum();
        // A wrong removal is reported once, by the first check after it.
        let expected = std::mem::replace(&mut self.removed, removed);
        match removed == expected {
            true => Ok(()),
            false => Err(format!("{removed} endpoints were removed, expected {expected}")),
        }
    }
}
