//! The processes under measurement: an application, an Envoy with a plain listener, an Envoy for each
//! form of the filter, our agent, and pilot-agent.

use std::net::{IpAddr, SocketAddr};

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use kit::admin::{Mood, ScriptedAdmin};
use kit::agent;
use kit::app::counted::{CountedApp, Habit};
use kit::envoy::{self, Envoy, Version, folder};
use kit::net;
use kit::oracle::Oracle;
use kit::pilot_agent::PilotAgent;
use kit::plain_listener;
use kit::pod::{self, Pod};
use kit::process::Process;
use kit::sidecar::{Builder, Sidecar};
use serde_json::{Map, Value, json};

use crate::caller::Caller;
use crate::kinds::Kinds;
use crate::pace::Pace;
use crate::route::{MeasuredProcess, Route, Target};

/// Number of probers of an application that does not answer in time.
pub(crate) const SILENT: usize = 4;
/// Probes to send before the first measurement.
pub(crate) const WARM_UP: u32 = 2000;

pub(crate) struct Setup {
    pub(crate) oracle: Oracle,
    pub(crate) routes: Vec<(Route, Target)>,
    pub(crate) processes: Vec<(MeasuredProcess, Process)>,
    envoys: [Envoy; 5],
    /// `None` for a version whose agent answers no probes.
    agent: Option<Sidecar>,
    pub(crate) pace: Pace,
    _admin: ScriptedAdmin,
    pilot_agent: PilotAgent,
    /// Where the Envoys listen.
    listeners: [IpAddr; 5],
    pub(crate) kinds: Kinds,
    /// The address of all applications.
    pub(crate) applications: IpAddr,
    _applications: [CountedApp; 2],
}

impl Setup {
    /// Starts everything; each Envoy runs with one worker.
    pub(crate) async fn start() -> Self {
        let applications = net::loopback();
        let listeners = [(); 5].map(|()| net::loopback());
        let [plain, wasm, native, wasm_reuse, native_reuse] = listeners;
        let app = CountedApp::start(applications, Habit::keep_alive());
        let kinds = Kinds::start(applications).await;
        let silent = CountedApp::start(applications, Habit::Hang);
        let mut probers = probers(app.address, silent.port());
        probers.extend(kinds.probers());
        let probers = Value::Object(probers);
        let start = async |name, ip, filter, reuse| {
            let shipped = Pod::bootstrap(name, ip, &probers);
            let shipped = Bootstrap { reuse_connections: reuse, ..shipped };
            let bootstrap = plain_listener::render(shipped, filter, baseline_listener(ip), app.address);
            Envoy::start(Version::Newest, folder(name), &bootstrap, 1).await
        };
        let envoys = [
            start("plain", plain, None, false).await,
            start("wasm", wasm, Some(FilterCode::File(pod::wasm())), false).await,
            start("native", native, Some(FilterCode::Module(pod::module())), false).await,
            start("wasm-reuse", wasm_reuse, Some(FilterCode::File(pod::wasm())), true).await,
            start("native-reuse", native_reuse, Some(FilterCode::Module(pod::module())), true).await,
        ];
        let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
        let agent = if answers_probes().await {
            let builder = Builder::bare("agent").instance_ip(applications).args(&["--probes", "agent"]);
            let builder = builder.env("ISTIO_KUBE_APP_PROBERS", &probers.to_string());
            let agent = builder.watching(admin.address).start_plain();
            agent.until(200, "ready").await;
            Some(agent)
        } else {
            None
        };
        let pilot_agent = PilotAgent::start(applications, &probers, None).await;
        let oracle = Oracle::start();
        let envoy = |place: usize| Process::new(envoys[place].pid());
        let mut processes = vec![
            (MeasuredProcess::PlainEnvoy, envoy(0)),
            (MeasuredProcess::WasmEnvoy, envoy(1)),
            (MeasuredProcess::NativeEnvoy, envoy(2)),
            (MeasuredProcess::WasmReuseEnvoy, envoy(3)),
            (MeasuredProcess::NativeReuseEnvoy, envoy(4)),
            (MeasuredProcess::PilotAgent, pilot_agent.process()),
            (MeasuredProcess::Application, Process::new(std::process::id())),
            (MeasuredProcess::Oracle, Process::new(oracle.pid())),
        ];
        let mut routes = vec![
            (Route::Direct, Target::new(app.address, "/")),
            (Route::Plain, Target::new(baseline_listener(plain), "/")),
            (Route::Wasm, Target::of_container(envoy::probe_listener(wasm), "app")),
            (Route::Native, Target::of_container(envoy::probe_listener(native), "app")),
            (Route::WasmReuse, Target::of_container(envoy::probe_listener(wasm_reuse), "app")),
            (Route::NativeReuse, Target::of_container(envoy::probe_listener(native_reuse), "app")),
            (Route::PilotAgent, Target::of_container(pilot_agent.address, "app")),
        ];
        if let Some(agent) = &agent {
            let process = Process::new(agent.pid().as_raw().unsigned_abs());
            processes.push((MeasuredProcess::Agent, process));
            routes.push((Route::Agent, Target::of_container(envoy::probe_listener(agent.ip), "app")));
        }
        Self {
            oracle,
            routes,
            processes,
            envoys,
            agent,
            pace: Pace::new(),
            _admin: admin,
            pilot_agent,
            listeners,
            kinds,
            applications,
            _applications: [app, silent],
        }
    }

    /// Returns whether the measured version has a route.
    pub(crate) fn has(&self, route: Route) -> bool {
        self.routes.iter().any(|(found, _)| *found == route)
    }

    /// Returns where a route answers the probes of the prober table; `None` if it has none.
    pub(crate) fn prober_of(&self, route: Route) -> Option<SocketAddr> {
        let [_, wasm, native, wasm_reuse, native_reuse] = self.listeners.map(envoy::probe_listener);
        match route {
            Route::Direct | Route::Plain => None,
            Route::Wasm => Some(wasm),
            Route::Native => Some(native),
            Route::WasmReuse => Some(wasm_reuse),
            Route::NativeReuse => Some(native_reuse),
            Route::Agent => self.agent.as_ref().map(|agent| envoy::probe_listener(agent.ip)),
            Route::PilotAgent => Some(self.pilot_agent.address),
        }
    }

    /// Returns a client for the probe of this container.
    pub(crate) fn prober(&self, container: &str) -> Caller {
        Caller::new(envoy::probe_listener(self.listeners[1]), &format!("/app-health/{container}/readyz"))
    }

    pub(crate) async fn stop(self) {
        for envoy in self.envoys {
            envoy.stop().await;
        }
    }
}

/// Returns whether the agent has `--probes agent`, which versions before it refuse.
async fn answers_probes() -> bool {
    agent::run(&["run", "--help"], &[]).await.stdout.contains("--probes")
}

/// Returns the prober table: the application, a closed port, and the probers of the silent
/// application.
fn probers(app: SocketAddr, silent: u16) -> Map<String, Value> {
    let nobody = CountedApp::start(app.ip(), Habit::Hang).port();
    let http_get = |port: u16| json!({"httpGet": {"port": port}, "timeoutSeconds": 1});
    let mut table = Map::new();
    table.insert("/app-health/app/readyz".into(), http_get(app.port()));
    table.insert("/app-health/refused/readyz".into(), http_get(nobody));
    for number in 0..SILENT {
        table.insert(format!("/app-health/silent-{number}/readyz"), http_get(silent));
    }
    table
}

fn baseline_listener(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 8000)
}
