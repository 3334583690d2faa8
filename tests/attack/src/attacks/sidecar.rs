//! Clients of the ports of a sidecar that take connections, probes, hooks or scrapes from kubelet and
//! scrapers, in each form of what answers probes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use kit::app::counted::{CountedApp, Habit};
use kit::envoy::{self, Version, probe_listener};
use kit::load::kubelet_request;
use kit::net;
use kit::sidecar::{Builder, Sidecar};
use serde_json::json;

use super::http::HttpListener;
use super::{FEW, PROBE_TIMEOUT, Strength, get, keep_alive, of_size, web_page};
use crate::addresses;
use crate::container::Container;
use crate::cost::Attacked;
use crate::honest::HonestClient;
use crate::hostile::{HostileClients, Then};
use crate::measurement::{Measurement, Phases, Row, Scenario, measure, sources};
use crate::request::Expectation;

/// The row of kubelet's hooks.
const HOOKS: &str = "kubelet, hooks";
pub(crate) const FAST: &str = "/app-health/fast/livez";
const SLOW: &str = "/app-health/slow/livez";
const FAILING: &str = "/app-health/failing/readyz";
const HOOK: &str = "/app-lifecycle/hook/prestopz";
const METRICS: &str = "/stats/prometheus";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// The time that the slow application needs for a response.
const SLOW_TIME: Duration = Duration::from_millis(300);
/// By this, kubelet's timeout is longer than that of the probe, as the documentation advises.
const MARGIN: Duration = Duration::from_secs(1);
/// Requests per second of each hostile address, far below the rate limit, and the connections of each.
const PROBES: (u32, usize) = (40, 16);
/// Idle connections of each address above its share of the listener's limit of 2,048.
const ABOVE_LIMIT: usize = 64;
/// Idle connections that each address opens per second: Envoy closes them after 5 s.
const IDLE_PER_SECOND: u32 = 1000;
/// The pause of clients that send a request and reconnect.
const RECONNECT: Duration = Duration::from_secs(4);
/// The address at which the agent scrapes applications.
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// A scraper's default timeout.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);
/// Concurrent scrapes of each slow reader; two of them alone would take all 24 places.
const SLOW_SCRAPES: usize = 16;
/// Size of the application's metrics in bytes, far more than Envoy and the sockets buffer, so a scrape
/// lasts as long as its reader.
const EXPOSITION: usize = 8 << 20;
/// A regular expression that takes long, for Envoy's metrics.
const EXPENSIVE_FILTER: &str = "/stats/prometheus?filter=(.*)*(.*)*x&usedonly";

/// The attack that a scraper notices first.
const SCRAPES: &str = "scrapes";
/// The memory limit of the container in docs/container.md, in bytes.
const LIMIT: u64 = 128 << 20;

/// Which of the attacks on port 15020 run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    All,
    /// Those whose requests reach the filter.
    Filter,
}

/// A Pod: the agent with its Envoy, and the applications.
struct Pod {
    sidecar: Sidecar,
    /// kubelet's address.
    node: IpAddr,
    /// The application of the hook.
    hook: CountedApp,
    attacked: Arc<Attacked>,
    _applications: [CountedApp; 4],
}

impl Pod {
    async fn start(name: &str, form: &str) -> Self {
        let builder = Builder::new(name);
        let (ip, node) = (builder.ip, net::loopback());
        let fast = CountedApp::start(ip, Habit::Answer(OK.into()));
        let slow = CountedApp::start(ip, Habit::AnswerAfter(SLOW_TIME, OK.into()));
        let failing = CountedApp::start(ip, Habit::status(503));
        let hook = CountedApp::start(ip, Habit::Answer(OK.into()));
        let metrics = CountedApp::start(LOCALHOST, Habit::Answer(exposition()));
        let target = metrics.port().to_string();
        let http = |app: &CountedApp| json!({"httpGet": {"port": app.port()}});
        let table = json!({FAST: http(&fast), SLOW: http(&slow), FAILING: http(&failing), HOOK: http(&hook)});
        let form = if form == "agent" { ["--probes", "agent"] } else { ["--filter", form] };
        let builder = as_shipped(builder, node, &table.to_string()).args(&form);
        let sidecar = builder.args(&["--metrics-target", &target]).start_plain();
        sidecar.until(200, "ready").await;
        let pid = |pid: nix::unistd::Pid| pid.as_raw().unsigned_abs();
        let processes = vec![("agent", pid(sidecar.pid())), ("Envoy", pid(sidecar.envoy_pid()))];
        let attacked = Arc::new(Attacked::new(processes, sidecar.folder.join("agent.log"), LIMIT));
        Self { sidecar, node, hook, attacked, _applications: [fast, slow, failing, metrics] }
    }

    fn listener(&self) -> SocketAddr {
        probe_listener(self.sidecar.ip)
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.sidecar.ip, port)
    }

    /// Returns kubelet's probes of each application, its hooks, and its probe of the sidecar.
    fn honest(&self) -> Vec<HonestClient> {
        let probe = |row: &'static str, path: &str, status: u16| {
            let mut client = get(row, self.node, self.listener(), path);
            client.request.deadline = PROBE_TIMEOUT + MARGIN;
            client.request.expectation = Expectation::status(status);
            client
        };
        vec![
            probe("kubelet, fast", FAST, 200),
            probe("kubelet, fast", FAILING, 503),
            probe("kubelet, slow", SLOW, 200),
            probe(HOOKS, HOOK, 200),
            get("kubelet, sidecar", self.node, self.at(15021), "/healthz/ready"),
        ]
    }

    fn scraper(&self) -> HonestClient {
        scraper(self.listener(), "app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n")
    }

    /// Returns clients that send a request on each connection, from this many addresses.
    fn clients(&self, sources: u32, path: &str) -> HostileClients {
        HostileClients {
            sources: addresses(sources),
            address: self.listener(),
            connections: PROBES.1,
            per_second: PROBES.0,
            tls: None,
            bytes: kubelet_request(self.listener(), path),
            then: Then::Close { after: Duration::ZERO },
        }
    }

    fn attacks(&self, extent: Extent, strength: Strength) -> Vec<(String, Vec<HostileClients>)> {
        let mut attacks = Vec::new();
        for (application, path) in [("fast", FAST), ("slow", SLOW)] {
            for sources in if extent == Extent::All { vec![1, 10, 100] } else { vec![100] } {
                let name = format!("{sources} addresses probe the {application} application");
                attacks.push((name, vec![self.clients(sources, path)]));
            }
        }
        attacks.push(("hooks".to_owned(), vec![self.clients(Strength::SOURCES, HOOK)]));
        if extent == Extent::Filter {
            return attacks;
        }
        let many = strength.connections * 4;
        let reconnecting = HostileClients {
            connections: many,
            per_second: u32::try_from(many / 4).unwrap_or(u32::MAX).max(1),
            bytes: keep_alive(self.listener(), FAST),
            then: Then::Close { after: RECONNECT },
            ..self.clients(1, FAST)
        };
        attacks.push(("keep-alive clients of one address that reconnect".to_owned(), vec![reconnecting]));
        let idle = HostileClients {
            connections: strength.connections + ABOVE_LIMIT,
            per_second: IDLE_PER_SECOND,
            bytes: Vec::new(),
            then: Then::Wait,
            ..self.clients(Strength::SOURCES, FAST)
        };
        let name = format!("{} idle connections", idle.connections * idle.sources.len());
        attacks.push((name, vec![idle]));
        let slow_scrapes = HostileClients {
            connections: SLOW_SCRAPES,
            bytes: keep_alive(self.listener(), METRICS),
            then: Then::ReadSlowly,
            ..self.clients(Strength::SOURCES, METRICS)
        };
        let expensive = HostileClients { per_second: 5, connections: 1, ..self.clients(1, EXPENSIVE_FILTER) };
        let readers = SLOW_SCRAPES * slow_scrapes.sources.len();
        let name = format!("{SCRAPES}: {readers} slow readers, and filter=");
        attacks.push((name, vec![slow_scrapes, expensive]));
        let every_kind = HttpListener::get(self.listener(), FAST).attacks(strength);
        attacks.extend(every_kind.into_iter().map(|(name, hostile)| (name.to_owned(), hostile)));
        attacks
    }
}

/// Returns a scraper that expects this part of the metrics.
fn scraper(address: SocketAddr, part: &'static str) -> HonestClient {
    let mut client = get("metrics", net::loopback(), address, METRICS);
    client.request.deadline = SCRAPE_TIMEOUT;
    client.request.expectation = Expectation::body(200, part);
    client.interval = Duration::from_millis(500);
    client
}

/// Returns a response with metrics in long lines, which are fast to parse.
fn exposition() -> Vec<u8> {
    let line = format!("some_series{{some_label=\"{}\"}} 1\n", "x".repeat(4000));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    (head.to_owned() + &line.repeat(EXPOSITION / line.len())).into_bytes()
}

/// Sets what the shipped template sets.
pub(crate) fn as_shipped(builder: Builder, node: IpAddr, table: &str) -> Builder {
    builder
        .env("ISTIO_KUBE_APP_PROBERS", table)
        .env("APP_HEALTH_NODE_IP", &node.to_string())
        .env("APP_HEALTH_ENVOY_RESTART", "limited")
        .env("APP_HEALTH_ENVOY_HANG_SECONDS", "10")
        .env("APP_HEALTH_LIVE", "true")
}

/// Attacks a Pod in which this form answers probes in all ways, one after the other.
pub async fn run(
    form: &str,
    extent: Extent,
    strength: Strength,
    phases: Phases,
    mut done: impl FnMut(Measurement),
) {
    for (size, many) in [("few", false), ("many", true)] {
        let name = format!("attack-{form}-{size}");
        let _container = Container::new(&name, LIMIT);
        let pod = Pod::start(&name, form).await;
        for (name, hostile) in of_size(pod.attacks(extent, strength), many, |(_, hostile)| hostile) {
            done(pod.attack(form, name, hostile, phases).await);
        }
    }
}

/// Attacks the ports of the agent, and the port of Envoy's metrics that a bootstrap without an agent has.
pub async fn run_other_ports(strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    let container = Container::new("attack-ports", LIMIT);
    let pod = Pod::start("attack-ports", "native").await;
    let ports = [
        ("15021", HttpListener::get(pod.at(15021), "/healthz/ready")),
        ("15090", HttpListener::get(pod.at(15090), METRICS)),
    ];
    for (port, listener) in ports {
        let attacks =
            [false, true].map(|many| of_size(listener.attacks(strength), many, |(_, hostile)| hostile));
        for (name, hostile) in attacks.into_iter().flatten() {
            let mut honest = vec![get("kubelet, sidecar", pod.node, pod.at(15021), "/healthz/ready")];
            // Scrapers at 24 addresses or more can block others: a known limit.
            if port != "15090" || sources(&hostile) <= FEW {
                honest.push(scraper(pod.at(15090), "\nenvoy_server_live"));
            }
            done(measure(pod.scenario(port, name.to_owned(), honest, hostile), phases).await);
        }
    }
    let targets = [("POST", "/drain"), ("POST", "/quitquitquit"), ("GET", "/debug/state"), ("GET", "/")];
    let pages = web_page::requests(pod.at(15004), &targets);
    done(measure(pod.scenario("15004", "web pages".to_owned(), pages, Vec::new()), phases).await);
    drop((pod, container));
    stats_of_envoy(strength, phases, done).await;
}

async fn stats_of_envoy(strength: Strength, phases: Phases, mut done: impl FnMut(Measurement)) {
    let (name, ip) = ("attack-stats", net::loopback());
    let _container = Container::new(name, LIMIT);
    let bootstrap = kit::pod::Pod::bootstrap(name, ip, &json!({}));
    let pod = kit::pod::Pod::with(name, Version::Newest, &bootstrap).await;
    let log = envoy::folder(name).join("envoy.log");
    let attacked = Arc::new(Attacked::new(vec![("Envoy", pod.envoy.pid())], log, LIMIT));
    let address = SocketAddr::new(ip, 15090);
    let listener = HttpListener::get(address, METRICS);
    let attacks = [false, true].map(|many| of_size(listener.attacks(strength), many, |(_, hostile)| hostile));
    for (attack, hostile) in attacks.into_iter().flatten() {
        let scenario = Scenario {
            listener: "Envoy without an agent, 15090".to_owned(),
            attack: attack.to_owned(),
            // One client can keep others out: a known limit.
            honest: Vec::new(),
            newcomers: Vec::new(),
            hostile,
            attacked: Arc::clone(&attacked),
            bars: Vec::new(),
        };
        done(measure(scenario, phases).await);
    }
}

impl Pod {
    /// Attacks the probe listener.
    async fn attack(
        &self,
        form: &str,
        name: String,
        hostile: Vec<HostileClients>,
        phases: Phases,
    ) -> Measurement {
        let mut honest = self.honest();
        if name.starts_with(SCRAPES) {
            honest.push(self.scraper());
        }
        let scenario = self.scenario(&format!("15020, {form}"), name, honest, hostile);
        let hooks = self.hook.requests();
        let mut measurement = measure(scenario, phases).await;
        let of_strangers = (self.hook.requests() - hooks).saturating_sub(kubelets_hooks(&measurement));
        if of_strangers > 0 {
            measurement.examples.push(format!("hooks: {of_strangers} of strangers reached the application"));
            measurement.rows.iter_mut().for_each(|row| count_hooks(row, of_strangers));
        }
        measurement
    }

    fn scenario(
        &self,
        port: &str,
        attack: String,
        honest: Vec<HonestClient>,
        hostile: Vec<HostileClients>,
    ) -> Scenario {
        Scenario {
            listener: format!("sidecar {port}"),
            attack,
            honest,
            newcomers: Vec::new(),
            hostile,
            attacked: Arc::clone(&self.attacked),
            bars: Vec::new(),
        }
    }
}

fn kubelets_hooks(measurement: &Measurement) -> u64 {
    let rows = measurement.rows.iter().filter(|row| row.name == HOOKS);
    rows.flat_map(|row| &row.phases).map(|figures| figures.count).sum()
}

/// Counts hooks of strangers as changed verdicts.
fn count_hooks(row: &mut Row, of_strangers: u64) {
    if row.name == HOOKS {
        row.phases[1].changed += of_strangers;
    }
}
