//! A sidecar with applications and a real Envoy, and the address of its status page.

use std::net::SocketAddr;

use kit::app::App;
use kit::app::switched::{self, Behavior};
use kit::sidecar::{Builder, Sidecar};
use kit::{caller, envoy};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Keys of the probes in the prober table.
pub const PROBES: [&str; 4] = ["cart/livez", "cart/readyz", "shop/livez", "shop/readyz"];

/// A running sidecar whose probes a test sends itself.
pub struct AgentPage {
    pub sidecar: Sidecar,
    cart: watch::Sender<Behavior>,
    _applications: [App; 2],
}

impl AgentPage {
    /// Starts two applications, `cart` and `shop`, and a sidecar that is ready; `name` is that of the
    /// test.
    ///
    /// # Panics
    /// If they do not start.
    pub async fn start(name: &str) -> Self {
        let builder = Builder::new(name);
        let cart = watch::Sender::new(Behavior::Serving);
        let behavior = cart.subscribe();
        let any_port = SocketAddr::new(builder.ip, 0);
        let applications = [
            App::routes(any_port, None, move |_| switched::http(*behavior.borrow())).await,
            App::routes(any_port, None, |_| switched::http(Behavior::Serving)).await,
        ];
        let [cart_port, shop_port] = [&applications[0], &applications[1]].map(App::port);
        let get = |path: &str, port| json!({"httpGet": {"path": path, "port": port}});
        let probers = json!({
            "/app-health/cart/livez": {"tcpSocket": {"port": cart_port}},
            "/app-health/cart/readyz": get("/health?deep=1", cart_port),
            "/app-health/shop/livez": get("/livez", shop_port),
            "/app-health/shop/readyz": get("/readyz", shop_port),
        });
        let sidecar = builder.env("ISTIO_KUBE_APP_PROBERS", &probers.to_string()).start();
        sidecar.until(200, "ready").await;
        Self { sidecar, cart, _applications: applications }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.sidecar.local_address())
    }

    /// Sets the behavior of the application `cart`.
    pub fn set_cart(&self, behavior: Behavior) {
        self.cart.send_replace(behavior);
    }

    /// Sends every probe once, as kubelet does, and returns the statuses in the order of [`PROBES`].
    pub async fn probe(&self) -> Vec<u16> {
        let listener = envoy::probe_listener(self.sidecar.ip);
        let mut statuses = Vec::new();
        for probe in PROBES {
            statuses.push(caller::probe(listener, &format!("/app-health/{probe}")).await.status);
        }
        statuses
    }
}

/// Returns the status of a probe in the data of an event of the page, such as `fails`.
pub fn probe_status<'a>(event: &'a Value, probe: &str) -> &'a Value {
    let tables = event["state"]["tables"].as_array().into_iter().flatten();
    let rows = tables.filter(|table| table["id"] == "probes").flat_map(|table| table["rows"].as_array());
    rows.flatten().find(|row| row[0] == probe).map_or(&Value::Null, |row| &row[2]["text"])
}
