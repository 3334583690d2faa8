//! Measures probes of each kind: directly, by pilot-agent, by our agent, and through both forms of the filter.

use std::io::{Error, Result};
use std::net::IpAddr;
use std::time::Duration;

use kit::app::counted::{CountedApp, Habit};
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, Tls};
use kit::app::{App, Step};
use kit::oracle::{ProbeResult, Question};
use kit::quiet_rounds::QuietRounds;
use kit::report::{Row, median, median_ratio};
use serde_json::{Value, json};

use crate::pace::BLOCK;
use crate::route::{Route, Target};
use crate::setup::Setup;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// The kinds, by the name of the container that declares the probe.
const KINDS: [&str; 4] = ["http", "https", "tcp", "grpc"];
const ROUTES: [Route; 7] = [
    Route::Direct,
    Route::PilotAgent,
    Route::Wasm,
    Route::Native,
    Route::WasmReuse,
    Route::NativeReuse,
    Route::Agent,
];
/// Places in the list of routes.
const DIRECT: usize = 0;
const PILOT_AGENT: usize = 1;
/// Kubelet's deadline: one second more than the declared timeout.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An application of each kind.
pub(crate) struct Kinds {
    handlers: [Value; KINDS.len()],
    _http: CountedApp,
    _https: App,
    _grpc: GrpcApp,
}

impl Kinds {
    pub(crate) async fn start(ip: IpAddr) -> Self {
        tls::install_provider();
        let http = CountedApp::start(ip, Habit::keep_alive());
        let steps = vec![Step::Read, Step::Write(OK.into()), Step::Repeat];
        let https = App::start_tls(ip, Tls::with_alpn(&["http/1.1"]).acceptor(), steps).await;
        let grpc = GrpcApp::scripted(ip, None, GrpcAnswer::serving(1)).await;
        let handlers = [
            json!({"httpGet": {"port": http.port()}}),
            json!({"httpGet": {"port": https.port(), "scheme": "HTTPS"}}),
            json!({"tcpSocket": {"port": http.port()}}),
            json!({"grpc": {"port": grpc.port()}}),
        ];
        Self { handlers, _http: http, _https: https, _grpc: grpc }
    }

    /// Returns the probers of all kinds.
    pub(crate) fn probers(&self) -> impl Iterator<Item = (String, Value)> {
        KINDS.iter().zip(&self.handlers).map(|(kind, handler)| {
            let mut prober = handler.clone();
            prober["timeoutSeconds"] = 1.into();
            (format!("/app-health/{kind}/readyz"), prober)
        })
    }
}

/// Median latencies in microseconds: of each kind, of each route.
type Medians = [Vec<f64>; KINDS.len()];

/// Measures each kind and route in each round.
pub(crate) async fn measure(setup: &Setup, quiet: &mut QuietRounds, rounds: u32) -> Result<Vec<Row>> {
    let routes: Vec<Route> = ROUTES.into_iter().filter(|route| setup.has(*route)).collect();
    let mut measured = Vec::new();
    for (_, first) in (0..rounds).zip((0..routes.len()).cycle()) {
        measured.push(quiet.round(async || round(setup, &routes, first).await).await?);
    }
    let kinds = KINDS.into_iter().enumerate();
    Ok(kinds.flat_map(|(kind, name)| rows(name, kind, &routes, &measured)).collect())
}

/// Measures one round, which begins with the route at this place of the list.
async fn round(setup: &Setup, routes: &[Route], first: usize) -> Result<Medians> {
    let mut medians = [(); KINDS.len()].map(|()| vec![0.0; routes.len()]);
    for ((kind, direct), medians) in KINDS.into_iter().zip(&setup.kinds.handlers).zip(&mut medians) {
        for place in (first..routes.len()).chain(0..first) {
            let (ip, handler) = match setup.prober_of(routes[place]) {
                Some(address) => {
                    let Target { address, path } = Target::of_container(address, kind);
                    (address.ip(), json!({"httpGet": {"port": address.port(), "path": path}}))
                }
                None => (setup.applications, direct.clone()),
            };
            setup.pace.wait(routes[place]).await;
            medians[place] = ask(setup, ip, handler).await?;
        }
    }
    Ok(medians)
}

/// Returns the medians of a kind over all rounds, and those of the ratios of each round: to the direct
/// probe and, for our forms, to pilot-agent.
fn rows(kind_name: &str, kind: usize, routes: &[Route], rounds: &[Medians]) -> Vec<Row> {
    let column = |route: usize| -> Vec<f64> { rounds.iter().map(|round| round[kind][route]).collect() };
    let ratio = |route: usize, to: usize| median_ratio(&column(route), &column(to));
    let mut rows = Vec::new();
    for (place, route) in routes.iter().copied().enumerate() {
        let name = format!("{kind_name} probe, {}, p50", route.name());
        rows.push(Row::new(&name, median(&column(place)), "us"));
        if route != Route::Direct {
            rows.push(Row::new(format!("{name} / direct"), ratio(place, DIRECT), "ratio"));
        }
        if Route::OURS.contains(&route) {
            let name = format!("{name} / pilot-agent");
            rows.push(Row::new(name, ratio(place, PILOT_AGENT), "ratio").at_most(bar(route, kind_name)));
        }
    }
    rows
}

/// Returns the target of a ratio to pilot-agent.
fn bar(route: Route, kind: &str) -> f64 {
    match (route, kind) {
        (Route::Agent, "http" | "tcp" | "grpc") => 0.85,
        (Route::Native, "tcp") => 1.05,
        _ => 1.0,
    }
}

/// Sends probes in sequence and returns the median of their durations in microseconds.
async fn ask(setup: &Setup, ip: IpAddr, handler: Value) -> Result<f64> {
    let question = Question { repeat: BLOCK, ..Question::once(ip, TIMEOUT, handler.clone()) };
    let answer = setup.oracle.ask(question).await.map_err(Error::other)?;
    if answer.results != [(ProbeResult::Success, u64::from(BLOCK))].into() {
        return Err(Error::other(format!("{ip} {handler}: {:?}, {}", answer.results, answer.output)));
    }
    let micros: Vec<f64> = answer.latencies.iter().map(|latency| latency.as_secs_f64() * 1e6).collect();
    Ok(median(&micros))
}
