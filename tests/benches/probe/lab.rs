//! What is measured: an application, and one Envoy with the probe listener and a plain one before it.

use std::io::Result;
use std::net::{IpAddr, SocketAddr};

use serde_json::{Map, Value, json};
use tests::app::counted::{CountedApp, Habit};
use tests::envoy::{self, Envoy, Version, folder};
use tests::net;
use tests::plain;
use tests::pod::Pod;
use tests::process::Process;
use tests::report::Row;

use crate::caller::Caller;

/// Probers of an application that does not answer in time.
pub(crate) const SILENT: usize = 4;
/// Probes before anything is measured.
pub(crate) const WARM_UP: usize = 2000;
const MIB: f64 = 1_048_576.0;

/// A way to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Without Envoy.
    Direct,
    /// By a route of Envoy.
    Plain,
    /// By the filter.
    Filter,
}

impl Way {
    /// In the order in which they take turns.
    pub(crate) const ALL: [Self; 3] = [Self::Direct, Self::Plain, Self::Filter];

    /// As it stands in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Plain => "plain",
            Self::Filter => "filter",
        }
    }
}

/// Everything that is measured.
pub(crate) struct Lab {
    app: CountedApp,
    _silent: CountedApp,
    ip: IpAddr,
    envoy: Envoy,
}

impl Lab {
    /// Starts the application and Envoy, on one worker.
    pub(crate) async fn start() -> Self {
        let ip = net::loopback();
        let app = CountedApp::start(ip, Habit::status(200));
        let silent = CountedApp::start(ip, Habit::Hang);
        let nobody = CountedApp::start(ip, Habit::Hang).port();
        let mut table = Map::new();
        let http_get = |port: u16| json!({"httpGet": {"port": port}, "timeoutSeconds": 1});
        table.insert("/app-health/app/readyz".into(), http_get(app.port()));
        table.insert("/app-health/refused/readyz".into(), http_get(nobody));
        for number in 0..SILENT {
            table.insert(format!("/app-health/silent-{number}/readyz"), http_get(silent.port()));
        }
        let bootstrap = bootstrap("bench", ip, app.address, &table.into());
        let envoy = Envoy::start(Version::Newest, folder("bench"), &bootstrap, 1);
        Self { envoy: envoy.await, app, _silent: silent, ip }
    }

    /// Where a way begins, and the path that is asked for there.
    pub(crate) fn target(&self, way: Way) -> (SocketAddr, &'static str) {
        match way {
            Way::Direct => (self.app.address, "/"),
            Way::Plain => (plain_listener(self.ip), "/"),
            Way::Filter => (envoy::probe_listener(self.ip), "/app-health/app/readyz"),
        }
    }

    /// A caller on this way.
    pub(crate) fn caller(&self, way: Way) -> Caller {
        let (address, path) = self.target(way);
        Caller::new(address, path)
    }

    /// A caller of this container's probe.
    pub(crate) fn prober(&self, container: &str) -> Caller {
        Caller::new(envoy::probe_listener(self.ip), &format!("/app-health/{container}/readyz"))
    }

    /// Envoy's process.
    pub(crate) fn process(&self) -> Process {
        Process::new(self.envoy.pid())
    }

    /// Resident memory of this Envoy, and of one without probe listener and filter, after probes by the plain route.
    pub(crate) async fn memory(&self) -> Result<Vec<Row>> {
        let ip = net::loopback();
        let mut bootstrap = bootstrap("bare", ip, self.app.address, &json!({}));
        plain::without_probe_listener(&mut bootstrap);
        let bare = Envoy::start(Version::Newest, folder("bare"), &bootstrap, 1).await;
        let caller = Caller::new(plain_listener(ip), "/");
        for _ in 0..WARM_UP {
            caller.ask(200)?;
        }
        let rss = |envoy: &Envoy| {
            let bytes = u32::try_from(Process::new(envoy.pid()).rss()).expect("less than 4 GiB");
            f64::from(bytes) / MIB
        };
        let (with, without) = (rss(&self.envoy), rss(&bare));
        bare.stop().await;
        Ok(vec![
            Row::new("Envoy's memory, filter and plain listener", with, "MiB"),
            Row::new("Envoy's memory, plain listener alone", without, "MiB"),
        ])
    }

    /// Ends Envoy.
    pub(crate) async fn stop(self) {
        self.envoy.stop().await;
    }
}

/// The shipped bootstrap with a plain listener beside the probe listener.
fn bootstrap(name: &str, ip: IpAddr, app: SocketAddr, probers: &Value) -> Value {
    let rendered = Pod::bootstrap(name, ip, probers).render();
    let mut bootstrap = serde_json::from_str(&rendered).expect("a bootstrap is JSON");
    plain::raise_rate_limit(&mut bootstrap);
    plain::add(&mut bootstrap, plain_listener(ip), app);
    bootstrap
}

fn plain_listener(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 8000)
}
