//! The processes under measurement: an application, one Envoy with the probe listener and a plain
//! listener, and pilot-agent if one runs.

use std::net::{IpAddr, SocketAddr};

use app_health_agent::bootstrap::Bootstrap;
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::{self, Envoy, Version, folder};
use kit::net;
use kit::oracle::Oracle;
use kit::plain;
use kit::pod::Pod;
use kit::process::Process;
use serde_json::{Map, Value, json};

use crate::arguments::Target;
use crate::caller::Caller;
use crate::owner;

/// Number of probers of an application that does not answer in time.
pub(crate) const SILENT: usize = 4;
/// Probes to send before the first measurement.
pub(crate) const WARM_UP: u32 = 2000;

/// A route from the client to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    /// An Envoy route without the filter.
    Plain,
    Filter,
    /// Istio's agent.
    PilotAgent,
}

impl Way {
    /// All routes, in the order in which they take turns.
    pub(crate) const ALL: [Self; 4] = [Self::Direct, Self::Plain, Self::Filter, Self::PilotAgent];

    /// Returns the name in the result table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Plain => "plain",
            Self::Filter => "filter",
            Self::PilotAgent => "pilot-agent",
        }
    }

    /// Returns the process between client and application; `None` for a direct route.
    pub(crate) fn part(self) -> Option<Part> {
        match self {
            Self::Direct => None,
            Self::Plain | Self::Filter => Some(Part::Envoy),
            Self::PilotAgent => Some(Part::PilotAgent),
        }
    }
}

/// A process whose CPU time and memory are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Envoy,
    PilotAgent,
    Application,
    Oracle,
}

impl Part {
    /// Returns the name in the result table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Envoy => "Envoy",
            Self::PilotAgent => "pilot-agent",
            Self::Application => "application",
            Self::Oracle => "kubelet's prober",
        }
    }
}

pub(crate) struct Lab {
    pub(crate) oracle: Oracle,
    /// The routes that are available.
    pub(crate) ways: Vec<(Way, Target)>,
    /// The processes that are visible to this user.
    pub(crate) processes: Vec<(Part, Process)>,
    /// The application at the end of every route.
    pub(crate) app: SocketAddr,
    envoy: Envoy,
    listeners: IpAddr,
    _own: (Option<CountedApp>, CountedApp),
}

impl Lab {
    /// Starts what is not running yet; Envoy runs with one worker.
    pub(crate) async fn start(application: Option<SocketAddr>, pilot_agent: Option<Target>) -> Self {
        let listeners = net::loopback();
        let own = application.is_none().then(|| CountedApp::start(listeners, Habit::status(200)));
        let app = own.as_ref().map(|own| own.address).or(application).expect("one of the two");
        let silent = CountedApp::start(app.ip(), Habit::Hang);
        let bootstrap = bootstrap("bench", listeners, app, &probers(app, silent.port()));
        let envoy = Envoy::start(Version::Newest, folder("bench"), &bootstrap, 1).await;
        let oracle = Oracle::start();

        let agent = pilot_agent.as_ref().and_then(|target| owner::of(target.address));
        let processes = [
            (Part::Envoy, Some(Process::new(envoy.pid()))),
            (Part::PilotAgent, agent),
            (Part::Application, owner::of(app)),
            (Part::Oracle, Some(Process::new(oracle.pid()))),
        ];
        let processes = processes.into_iter().filter_map(|(part, process)| Some((part, process?))).collect();
        let mut ways = vec![
            (Way::Direct, Target::new(app, "/")),
            (Way::Plain, Target::new(plain_listener(listeners), "/")),
            (Way::Filter, Target::new(envoy::probe_listener(listeners), "/app-health/app/readyz")),
        ];
        ways.extend(pilot_agent.map(|target| (Way::PilotAgent, target)));
        Self { oracle, ways, processes, app, envoy, listeners, _own: (own, silent) }
    }

    /// Returns a client for the probe of this container.
    pub(crate) fn prober(&self, container: &str) -> Caller {
        Caller::new(envoy::probe_listener(self.listeners), &format!("/app-health/{container}/readyz"))
    }

    pub(crate) async fn stop(self) {
        self.envoy.stop().await;
    }
}

/// Returns the prober table: the application, a closed port, and the probers of the silent
/// application.
fn probers(app: SocketAddr, silent: u16) -> Value {
    let nobody = CountedApp::start(app.ip(), Habit::Hang).port();
    let http_get = |port: u16| json!({"httpGet": {"port": port}, "timeoutSeconds": 1});
    let mut table = Map::new();
    table.insert("/app-health/app/readyz".into(), http_get(app.port()));
    table.insert("/app-health/refused/readyz".into(), http_get(nobody));
    for number in 0..SILENT {
        table.insert(format!("/app-health/silent-{number}/readyz"), http_get(silent));
    }
    table.into()
}

/// Returns the shipped bootstrap with a plain listener added to the probe listener.
pub(crate) fn bootstrap(name: &str, listeners: IpAddr, app: SocketAddr, probers: &Value) -> Value {
    let shipped = Bootstrap { instance_ip: app.ip(), ..Pod::bootstrap(name, listeners, probers) };
    let mut bootstrap = serde_json::from_str(&shipped.render()).expect("a bootstrap is JSON");
    plain::raise_rate_limit(&mut bootstrap);
    plain::add(&mut bootstrap, plain_listener(listeners), app);
    bootstrap
}

pub(crate) fn plain_listener(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 8000)
}
