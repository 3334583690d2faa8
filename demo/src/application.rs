//! The demo's application: five containers, each with a switch between healthy and unhealthy.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::StatusCode;
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::ports::Ports;
use crate::sidecar::Sidecar;
use crate::{grpc_health, http};

/// The containers in the order of their numbers, and whether each is healthy at first.
const CONTAINERS: [(&str, bool); 5] =
    [("web", true), ("shop", true), ("db", true), ("api", true), ("legacy", false)];

/// Whether each container is healthy, in the order of [`CONTAINERS`].
#[derive(Clone)]
struct Switches(Arc<[watch::Sender<bool>; 5]>);

impl Switches {
    fn find(&self, container: &str) -> Option<&watch::Sender<bool>> {
        let index = CONTAINERS.iter().position(|(name, _)| *name == container)?;
        self.0.get(index)
    }

    fn is_healthy(&self, container: &str) -> bool {
        self.find(container).is_some_and(|switch| *switch.borrow())
    }

    /// Toggles a container and returns whether it is healthy now; `None` if there is no such
    /// container.
    fn flip(&self, container: &str) -> Option<bool> {
        let switch = self.find(container)?;
        switch.send_modify(|healthy| *healthy = !*healthy);
        Some(*switch.borrow())
    }
}

/// The containers; they run until this is dropped.
pub(crate) struct Application {
    flip_address: SocketAddr,
    probers: Map<String, Value>,
    switches: Switches,
    _servers: JoinSet<()>,
}

impl Application {
    /// Starts every container on its port at `pod_ip`.
    ///
    /// # Errors
    /// Names the port that cannot be bound.
    pub(crate) async fn start(pod_ip: IpAddr, ports: &Ports) -> Result<Self, String> {
        let switches = Switches(Arc::new(CONTAINERS.map(|(_, healthy)| watch::Sender::new(healthy))));
        let bind = async |port| {
            let address = SocketAddr::new(pod_ip, port);
            TcpListener::bind(address).await.map_err(|error| format!("{address}: {error}"))
        };
        let mut servers = JoinSet::new();
        for (container, port, acceptor) in [
            ("web", ports.web, None),
            ("legacy", ports.legacy, None),
            ("shop", ports.shop, Some(acceptor()?)),
        ] {
            let switches = switches.clone();
            let respond = move |_: &str| match switches.is_healthy(container) {
                true => (StatusCode::OK, "fine\n"),
                false => (StatusCode::SERVICE_UNAVAILABLE, "no database\n"),
            };
            servers.spawn(http::serve(bind(port).await?, acceptor, respond));
        }
        let api = switches.clone();
        servers.spawn(grpc_health::serve(bind(ports.api).await?, move || api.is_healthy("api")));
        let flips = switches.clone();
        let flip = move |path: &str| match path.strip_prefix("/flip/").and_then(|name| flips.flip(name)) {
            Some(true) => (StatusCode::OK, "healthy now\n"),
            Some(false) => (StatusCode::OK, "unhealthy now\n"),
            None => {
                (StatusCode::NOT_FOUND, "use /flip/web, /flip/shop, /flip/db, /flip/api or /flip/legacy\n")
            }
        };
        servers.spawn(http::serve(bind(ports.flip).await?, None, flip));
        let healthy = switches.find("db").expect("db is a container").subscribe();
        servers.spawn(database(bind(ports.db).await?, healthy));
        let flip_address = SocketAddr::new(pod_ip, ports.flip);
        Ok(Self { flip_address, probers: probers(ports), switches, _servers: servers })
    }

    /// The prober table of the containers.
    pub(crate) fn probers(&self) -> Map<String, Value> {
        self.probers.clone()
    }

    /// Returns the result that a direct probe by kubelet would have; `None` for a container that is
    /// not part of the demo.
    pub(crate) fn is_healthy(&self, container: &str, kind: &str) -> Option<bool> {
        let healthy = *self.switches.find(container)?.borrow();
        // The liveness probes use tcpSocket, and an HTTP server that responds with 503 still accepts
        // connections.
        Some(healthy || kind == "livez")
    }

    /// Toggles a container, by name or number, between healthy and unhealthy.
    pub(crate) fn flip(&self, name: &str) {
        let by_number = name.parse::<usize>().ok().and_then(|number| CONTAINERS.get(number.checked_sub(1)?));
        self.switches.flip(by_number.map_or(name, |(name, _)| name));
    }

    /// Returns the usage text to print below the table.
    pub(crate) fn help(&self, readiness: &str, sidecar: &Sidecar) -> String {
        let numbered: Vec<String> =
            CONTAINERS.iter().enumerate().map(|(index, (name, _))| format!("{} {name}", index + 1)).collect();
        format!(
            "\nreadiness on http://localhost:{}/healthz/ready: {readiness}\n\
             toggle a container: its number and Enter ({}), or curl http://{}/flip/web\n\
             send a probe: curl -i http://localhost:{}/app-health/web/readyz\n\
             page of the agent: {}\n\
             end: q and Enter, or Ctrl-C\n",
            sidecar.ready_address.port(),
            numbered.join(", "),
            self.flip_address,
            sidecar.probe_address.port(),
            sidecar.page(),
        )
    }
}

fn probers(ports: &Ports) -> Map<String, Value> {
    let http =
        |port: u16, scheme: &str| json!({"httpGet": {"path": "/healthz", "port": port, "scheme": scheme}});
    [
        ("/app-health/web/livez", json!({"tcpSocket": {"port": ports.web}})),
        ("/app-health/web/readyz", http(ports.web, "HTTP")),
        ("/app-health/shop/readyz", http(ports.shop, "HTTPS")),
        ("/app-health/db/readyz", json!({"tcpSocket": {"port": ports.db}})),
        ("/app-health/api/readyz", json!({"grpc": {"port": ports.api}})),
        ("/app-health/legacy/readyz", http(ports.legacy, "HTTP")),
    ]
    .into_iter()
    .map(|(path, mut prober)| {
        // A busy machine may need longer than a second, the default.
        prober["timeoutSeconds"] = 10.into();
        (path.to_owned(), prober)
    })
    .collect()
}

/// A self-signed certificate; kubelet does not verify those of probes.
fn acceptor() -> Result<TlsAcceptor, String> {
    let made = rcgen::generate_simple_self_signed(vec!["shop.example.com".to_owned()]);
    let made = made.map_err(|error| format!("the certificate of shop: {error}"))?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().and_then(
            |builder| builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key),
        );
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| format!("the certificate of shop: {error}"))?)))
}

/// Accepts connections while healthy; while it is not, the port is closed.
async fn database(listener: TcpListener, mut healthy: watch::Receiver<bool>) {
    let Ok(address) = listener.local_addr() else { return };
    let mut listener = Some(listener);
    loop {
        match &listener {
            Some(open) => tokio::select! {
                accepted = open.accept() => if let Ok((mut stream, _)) = accepted {
                    // A connection stays open until the client closes it.
                    tokio::spawn(async move { while stream.read(&mut [0; 64]).await.is_ok_and(|size| size > 0) {} });
                },
                changed = healthy.wait_for(|healthy| !healthy) => match changed {
                    Ok(_) => listener = None,
                    Err(_) => return,
                },
            },
            None => {
                if healthy.wait_for(|healthy| *healthy).await.is_err() {
                    return;
                }
                listener = TcpListener::bind(address).await.ok();
            }
        }
    }
}
