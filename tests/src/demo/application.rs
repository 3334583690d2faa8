//! The demo's application: five containers, each with a switch between healthy and not.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tonic_health::ServingStatus;

use super::ports;
use crate::app::grpc::GrpcApp;
use crate::app::tls::Tls;
use crate::app::{App, Step, answer};

/// Container, port, and whether it begins healthy.
const CONTAINERS: [(&str, u16, bool); 5] = [
    ("web", ports::WEB, true),
    ("shop", ports::SHOP, true),
    ("db", ports::DB, true),
    ("api", ports::API, true),
    ("legacy", ports::LEGACY, false),
];

type Switches = Arc<Vec<(&'static str, watch::Sender<bool>)>>;

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
            Arc::new(CONTAINERS.map(|(name, _, healthy)| (name, watch::Sender::new(healthy))).into());
        let switch = |name: &str| find(&switches, name).expect("every container has a switch").clone();
        let address = |port| SocketAddr::new(pod_ip, port);
        let http = |name: &str| {
            let healthy = switch(name);
            move |_: &str| http_answer(*healthy.borrow())
        };
        let (health, reporter) = GrpcApp::real(address(ports::API)).await;
        let mut serving = switch("api").subscribe();
        tokio::spawn(async move {
            loop {
                let status = match *serving.borrow_and_update() {
                    true => ServingStatus::Serving,
                    false => ServingStatus::NotServing,
                };
                reporter.set_service_status("", status).await;
                if serving.changed().await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(listen_while_healthy(address(ports::DB), switch("db").subscribe()));
        let flips = Arc::clone(&switches);
        let servers = vec![
            App::routes(address(ports::WEB), None, http("web")).await,
            App::routes(address(ports::LEGACY), None, http("legacy")).await,
            App::routes(address(ports::SHOP), Some(Tls::default().acceptor()), http("shop")).await,
            App::routes(address(ports::FLIP), None, move |path| flip_answer(&flips, path)).await,
        ];
        Self { pod_ip, switches, _servers: servers, _health: health }
    }

    /// The prober table of the containers.
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

    /// What kubelet's own probe of this path would say; `None` for a container that is not ours.
    pub fn is_healthy(&self, container: &str, kind: &str) -> Option<bool> {
        let healthy = *find(&self.switches, container)?.borrow();
        // An HTTP server that answers 503 still accepts connections.
        Some(healthy || kind == "livez")
    }

    /// Turns a container, by name or number, from healthy to not or back.
    pub fn flip(&self, name: &str) {
        let by_number = name.parse::<usize>().ok().and_then(|number| CONTAINERS.get(number.checked_sub(1)?));
        flip(&self.switches, by_number.map_or(name, |(name, ..)| name));
    }

    /// How to use the demo, below the table.
    pub fn help(&self, ready: &str) -> String {
        let numbered: Vec<String> = CONTAINERS
            .iter()
            .enumerate()
            .map(|(index, (name, ..))| format!("{} {name}", index + 1))
            .collect();
        let host = SocketAddr::new(self.pod_ip, ports::FLIP);
        format!(
            "\nreadiness on http://localhost:{}/healthz/ready: {ready}\n\
             flip a container: its number and Enter ({}), or curl http://{host}/flip/web\n\
             probe by hand: curl -i http://localhost:{}/app-health/web/readyz\n\
             end: q and Enter, or Ctrl-C\n",
            ports::READY,
            numbered.join(", "),
            ports::PROBES,
        )
    }
}

fn find<'a>(switches: &'a Switches, name: &str) -> Option<&'a watch::Sender<bool>> {
    switches.iter().find(|(other, _)| *other == name).map(|(_, switch)| switch)
}

fn flip(switches: &Switches, name: &str) -> Option<bool> {
    let switch = find(switches, name)?;
    switch.send_modify(|healthy| *healthy = !*healthy);
    Some(*switch.borrow())
}

fn http_answer(healthy: bool) -> Vec<Step> {
    let (status, body) =
        if healthy { ("200 OK", "fine\n") } else { ("503 Service Unavailable", "no database\n") };
    text(status, body)
}

fn flip_answer(switches: &Switches, path: &str) -> Vec<Step> {
    match path.strip_prefix("/flip/").and_then(|name| flip(switches, name)) {
        Some(true) => text("200 OK", "healthy now\n"),
        Some(false) => text("200 OK", "not healthy now\n"),
        None => text("404 Not Found", "ask for /flip/web, /flip/shop, /flip/db, /flip/api or /flip/legacy\n"),
    }
}

fn text(status: &str, body: &str) -> Vec<Step> {
    answer(format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ))
}

/// A database that is down does not listen.
async fn listen_while_healthy(address: SocketAddr, mut healthy: watch::Receiver<bool>) {
    loop {
        let listening = *healthy.borrow_and_update();
        let app = match listening {
            true => Some(App::routes(address, None, |_| Vec::new()).await),
            false => None,
        };
        let changed = healthy.changed().await;
        drop(app);
        // The listener's task ends at its next turn; only then the port is free.
        tokio::task::yield_now().await;
        if changed.is_err() {
            return;
        }
    }
}
