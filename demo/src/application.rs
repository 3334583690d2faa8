//! The demo's application: five containers, each with a switch between healthy and unhealthy.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::ports;
use kit::app::grpc::GrpcApp;
use kit::app::switched::{self, Behaviour};
use kit::app::tls::Tls;
use kit::app::{App, Step};

/// Container, port, and initial behaviour.
const CONTAINERS: [(&str, u16, Behaviour); 5] = [
    ("web", ports::WEB, Behaviour::Serving),
    ("shop", ports::SHOP, Behaviour::Serving),
    ("db", ports::DB, Behaviour::Serving),
    ("api", ports::API, Behaviour::Serving),
    ("legacy", ports::LEGACY, Behaviour::Failing),
];

type Switches = Arc<Vec<(&'static str, watch::Sender<Behaviour>)>>;

/// The containers, which run until this is dropped.
pub struct Application {
    pod_ip: IpAddr,
    switches: Switches,
    _servers: Vec<App>,
    _health: GrpcApp,
}

impl Application {
    /// Starts every container on its port at `pod_ip`.
    pub async fn start(pod_ip: IpAddr) -> Self {
        let switches: Switches =
            Arc::new(CONTAINERS.map(|(name, _, behaviour)| (name, watch::Sender::new(behaviour))).into());
        let switch = |name: &str| find(&switches, name).expect("every container has a switch").clone();
        let address = |port| SocketAddr::new(pod_ip, port);
        let http = |name: &str| {
            let behaviour = switch(name);
            move |_: &str| switched::http(*behaviour.borrow())
        };
        let health = switched::grpc(address(ports::API), switch("api").subscribe(), |_| ()).await;
        tokio::spawn(switched::tcp(address(ports::DB), switch("db").subscribe(), |_| ()));
        let flips = Arc::clone(&switches);
        let servers = vec![
            App::routes(address(ports::WEB), None, http("web")).await,
            App::routes(address(ports::LEGACY), None, http("legacy")).await,
            App::routes(address(ports::SHOP), Some(Tls::default().acceptor()), http("shop")).await,
            App::routes(address(ports::FLIP), None, move |path| flip_answer(&flips, path)).await,
        ];
        Self { pod_ip, switches, _servers: servers, _health: health }
    }

    /// Returns the prober table of the containers.
    pub fn probers(&self) -> Map<String, Value> {
        let http =
            |port, scheme: &str| json!({"httpGet": {"path": "/healthz", "port": port, "scheme": scheme}});
        let table = json!({
            "/app-health/web/livez": {"tcpSocket": {"port": ports::WEB}},
            "/app-health/web/readyz": http(ports::WEB, "HTTP"),
            "/app-health/shop/readyz": http(ports::SHOP, "HTTPS"),
            "/app-health/db/readyz": {"tcpSocket": {"port": ports::DB}},
            "/app-health/api/readyz": {"grpc": {"port": ports::API}},
            "/app-health/legacy/readyz": http(ports::LEGACY, "HTTP"),
        });
        table.as_object().expect("an object").clone()
    }

    /// Returns what a direct probe by kubelet would report; `None` for a container that is not part
    /// of the demo.
    pub fn is_healthy(&self, container: &str, kind: &str) -> Option<bool> {
        let healthy = *find(&self.switches, container)?.borrow() == Behaviour::Serving;
        // An HTTP server that responds with 503 still accepts connections.
        Some(healthy || kind == "livez")
    }

    /// Toggles a container, by name or number, between healthy and unhealthy.
    pub fn flip(&self, name: &str) {
        let by_number = name.parse::<usize>().ok().and_then(|number| CONTAINERS.get(number.checked_sub(1)?));
        flip(&self.switches, by_number.map_or(name, |(name, ..)| name));
    }

    /// Returns the usage text to print below the table.
    pub fn help(&self, ready: &str) -> String {
        let numbered: Vec<String> = CONTAINERS
            .iter()
            .enumerate()
            .map(|(index, (name, ..))| format!("{} {name}", index + 1))
            .collect();
        let host = SocketAddr::new(self.pod_ip, ports::FLIP);
        format!(
            "\nreadiness on http://localhost:{}/healthz/ready: {ready}\n\
             toggle a container: its number and Enter ({}), or curl http://{host}/flip/web\n\
             send a probe: curl -i http://localhost:{}/app-health/web/readyz\n\
             end: q and Enter, or Ctrl-C\n",
            ports::READY,
            numbered.join(", "),
            ports::PROBES,
        )
    }
}

fn find<'a>(switches: &'a Switches, name: &str) -> Option<&'a watch::Sender<Behaviour>> {
    switches.iter().find(|(other, _)| *other == name).map(|(_, switch)| switch)
}

fn flip(switches: &Switches, name: &str) -> Option<Behaviour> {
    let switch = find(switches, name)?;
    switch.send_modify(|behaviour| {
        *behaviour = match behaviour {
            Behaviour::Serving => Behaviour::Failing,
            Behaviour::Failing | Behaviour::Hanging => Behaviour::Serving,
        };
    });
    Some(*switch.borrow())
}

fn flip_answer(switches: &Switches, path: &str) -> Vec<Step> {
    let (status, body) = match path.strip_prefix("/flip/").and_then(|name| flip(switches, name)) {
        Some(Behaviour::Serving) => ("200 OK", "healthy now\n"),
        Some(_) => ("200 OK", "not healthy now\n"),
        None => ("404 Not Found", "use /flip/web, /flip/shop, /flip/db, /flip/api or /flip/legacy\n"),
    };
    switched::text(status, "text/plain", body)
}
