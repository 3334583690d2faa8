//! Runs cases: kubelet's prober probes one instance of the application directly and a second one
//! through Envoy.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use serde_json::{Map, Value, json};

use super::answering;
use super::application::Application;
use super::bytes::fill;
use super::case::{Case, Family};
use super::compare::{Difference, Side, difference};
use super::kind::Kind;
use kit::net;
use kit::oracle::{Oracle, Question};
use kit::pod;

/// Number of cases that share one Envoy. Each case uses two listeners, and a process may have 1024
/// open files.
const BATCH: usize = 250;
/// Number of cases that share one agent, which gets their table as an environment variable of at most
/// 128 KiB.
const AGENT_BATCH: usize = 50;
/// Number of concurrent cases, below Envoy's circuit breaker limits.
const CONCURRENT_CASES: usize = 48;
/// Number of times a case that differs is run again while no other case runs; at most
/// `MAX_RERUNS` times while it still differs.
const RERUNS: usize = 3;
const MAX_RERUNS: usize = 10;
const CONCURRENT_RERUNS: usize = 6;
/// Limits for the application to end its scripts before the recorded requests are read: an
/// application may see a connection later than its client. The second one applies if the requests
/// differ.
const SETTLE: Duration = Duration::from_secs(1);
const SETTLE_LONG: Duration = Duration::from_secs(10);

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub direct: Side,
    /// The probe through the filter.
    pub through: Side,
    pub difference: Option<Difference>,
}

/// Runs `cases` and returns the outcomes in the same order. A case whose difference has a kind
/// according to `known` is not run again.
///
/// # Errors
/// If an application, the prober or Envoy cannot be started or does not respond.
pub async fn run(
    cases: &[Case],
    known: fn(&Case, &Difference) -> Option<Kind>,
) -> Result<Vec<Outcome>, String> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; cases.len()];
    for family in [Family::V4, Family::V6] {
        let of_family: Vec<usize> = (0..cases.len()).filter(|&index| cases[index].family == family).collect();
        for batch in of_family.chunks(batch_size()) {
            let chosen: Vec<&Case> = batch.iter().map(|&index| &cases[index]).collect();
            let done = run_batch(family, &chosen, known).await?;
            for (&index, outcome) in batch.iter().zip(done) {
                outcomes[index] = Some(outcome);
            }
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

async fn run_batch(
    family: Family,
    cases: &[&Case],
    known: fn(&Case, &Difference) -> Option<Kind>,
) -> Result<Vec<Outcome>, String> {
    // Held until Envoy has ended.
    let (ip, _reservation) = match family {
        Family::V4 => (net::loopback(), None),
        Family::V6 => (IpAddr::V6(Ipv6Addr::LOCALHOST), Some(net::ipv6_loopback().await)),
    };
    let start = |case| async move { Application::start(case, ip).await.map_err(|error| error.to_string()) };
    let direct = try_join_all(cases.iter().map(|case| start(case))).await?;
    let through = try_join_all(cases.iter().map(|case| start(case))).await?;
    let (answering, listener) = answering::start(ip, table(cases, &through)).await;

    // Malformed responses can affect later probes of kubelet's client, so it is restarted for each
    // batch.
    let oracle = Oracle::start();
    let setup = Setup { oracle, listener, ip, known };
    let numbered = cases.iter().zip(direct.iter().zip(&through)).enumerate();
    let trials: Vec<Trial<'_>> =
        numbered.map(|(number, (case, (direct, through)))| Trial { number, case, direct, through }).collect();
    let probed = futures_util::stream::iter(&trials).map(|trial| setup.probe_both(trial));
    let first: Vec<Outcome> = collect(probed.buffered(CONCURRENT_CASES)).await?;
    let reruns =
        futures_util::stream::iter(trials.iter().zip(first)).map(|(trial, first)| setup.rerun(trial, first));
    let outcomes = collect(reruns.buffered(CONCURRENT_RERUNS)).await;
    answering.stop().await;
    outcomes
}

async fn collect(
    stream: impl futures_util::Stream<Item = Result<Outcome, String>>,
) -> Result<Vec<Outcome>, String> {
    stream.collect::<Vec<_>>().await.into_iter().collect()
}

fn batch_size() -> usize {
    if pod::form().is_filter() { BATCH } else { AGENT_BATCH }
}

/// Returns the prober table of `cases`.
fn table(cases: &[&Case], applications: &[Application]) -> Map<String, Value> {
    let mut table = Map::new();
    for (number, (case, application)) in cases.iter().zip(applications).enumerate() {
        let mut prober = handler(case, application);
        prober["timeoutSeconds"] = case.probe.timeout_seconds.into();
        table.insert(path(number), prober);
    }
    table
}

fn path(number: usize) -> String {
    format!("/app-health/case-{number}/readyz")
}

/// Returns the prober for one instance: `{"httpGet": {...}}`.
fn handler(case: &Case, application: &Application) -> Value {
    let Some((name, value)) = case.probe.handler() else { return json!({}) };
    let mut value = value.clone();
    fill_all(&mut value, &application.placeholders);
    if value["port"].is_null() {
        value["port"] = application.port.into();
    }
    json!({name: value})
}

fn fill_all(value: &mut Value, placeholders: &[(String, String)]) {
    match value {
        Value::String(text) => *text = fill(text, placeholders),
        Value::Array(list) => list.iter_mut().for_each(|value| fill_all(value, placeholders)),
        Value::Object(fields) => fields.values_mut().for_each(|value| fill_all(value, placeholders)),
        _ => {}
    }
}

/// A case and its two instances.
struct Trial<'a> {
    number: usize,
    case: &'a Case,
    direct: &'a Application,
    through: &'a Application,
}

struct Setup {
    oracle: Oracle,
    listener: SocketAddr,
    ip: IpAddr,
    known: fn(&Case, &Difference) -> Option<Kind>,
}

impl Setup {
    /// Probes both instances at the same time.
    async fn probe_both(&self, trial: &Trial<'_>) -> Result<Outcome, String> {
        let declared = Duration::from_secs(trial.case.probe.timeout_seconds.into());
        let get = json!({"httpGet": {"path": path(trial.number), "port": self.listener.port()}});
        // The injector declares one second more for kubelet's own timeout.
        let (direct, through) = tokio::join!(
            self.probe_side(trial.direct, handler(trial.case, trial.direct), declared),
            self.probe_side(trial.through, get, declared + Duration::from_secs(1)),
        );
        let of_case = |error: String| format!("{}: {error}", trial.case.name);
        let (mut direct, mut through) = (direct.map_err(of_case)?, through.map_err(of_case)?);
        let mut found = difference(trial.case, &direct, &through);
        if found.as_ref().is_some_and(|found| *found != Difference::Verdict) {
            let reruns =
                tokio::try_join!(trial.direct.settle(SETTLE_LONG), trial.through.settle(SETTLE_LONG));
            reruns.map_err(|error| of_case(error.to_string()))?;
            direct.see(&trial.direct.seen(), &trial.direct.ports);
            through.see(&trial.through.seen(), &trial.through.ports);
            found = difference(trial.case, &direct, &through);
        }
        Ok(Outcome { direct, through, difference: found })
    }

    async fn probe_side(
        &self,
        application: &Application,
        handler: Value,
        timeout: Duration,
    ) -> Result<Side, String> {
        application.clear();
        let question = Question::once(self.ip, timeout, handler);
        let answer = self.oracle.ask(question).await.map_err(|error| error.to_string())?;
        application.settle(SETTLE).await.map_err(|error| error.to_string())?;
        Ok(Side::new(&answer, &application.seen(), &application.ports))
    }

    /// Some behaviors are races even for a direct probe. A case that differed is run again; it is
    /// equal if every result through the filter also occurs directly.
    async fn rerun(&self, trial: &Trial<'_>, first: Outcome) -> Result<Outcome, String> {
        if first.difference.as_ref().is_none_or(|found| (self.known)(trial.case, found).is_some()) {
            return Ok(first);
        }
        let mut direct = vec![first.direct];
        let mut through = Vec::new();
        loop {
            let again = self.probe_both(trial).await?;
            direct.push(again.direct);
            through.push(again.through);
            let worst = worst(trial.case, &direct, &through);
            let equal = worst.difference.is_none() && through.len() >= RERUNS;
            if equal || through.len() >= MAX_RERUNS {
                return Ok(worst);
            }
        }
    }
}

/// Returns the result through the filter that differs from every direct result, if there is one.
fn worst(case: &Case, direct: &[Side], through: &[Side]) -> Outcome {
    let best = |through: &Side| {
        let found = |direct: &Side| Outcome {
            direct: direct.clone(),
            through: through.clone(),
            difference: difference(case, direct, through),
        };
        direct
            .iter()
            .map(found)
            .min_by_key(|outcome| outcome.difference.is_some())
            .expect("there is a direct result")
    };
    let judged = through.iter().map(best);
    judged.max_by_key(|outcome| outcome.difference.is_some()).expect("there is a result through the filter")
}
