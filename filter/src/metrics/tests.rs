use std::collections::BTreeSet;

use probe::{ProbeKind, ProbePath, Reason};

use super::{Definition, Metric, MetricsHost, define_initial, id, initial_success};
use crate::config::Config;

fn path(text: &str) -> ProbePath {
    ProbePath::parse(text).expect(text)
}

#[test]
fn metric_names_carry_their_labels() {
    for (at, reason, counter, gauge) in [
        (
            "/app-health/my.app_1-x/readyz",
            Reason::Ok,
            "app_health_probes_total;container=my.app_1-x;kind=readyz;reason=ok",
            "app_health_probe_success;container=my.app_1-x;kind=readyz",
        ),
        (
            "/app-lifecycle/app/prestopz",
            Reason::GrpcServiceUnknown,
            "app_health_probes_total;container=app;kind=prestopz;reason=grpc_service_unknown",
            "app_health_probe_success;container=app;kind=prestopz",
        ),
    ] {
        assert_eq!(Metric::ProbesTotal(&path(at), reason).tagged_name(), counter);
        assert_eq!(Metric::ProbeSuccess(&path(at)).tagged_name(), gauge);
    }
    let names: BTreeSet<_> = Reason::ALL
        .iter()
        .map(|reason| Metric::ProbesTotal(&path("/app-health/a/livez"), *reason).tagged_name())
        .collect();
    assert_eq!(names.len(), Reason::ALL.len());
}

#[test]
fn gauges_start_with_kubelets_initial_results() {
    for (kind, success) in [
        (ProbeKind::Liveness, true),
        (ProbeKind::Readiness, false),
        (ProbeKind::Startup, false),
        (ProbeKind::PreStop, true),
        (ProbeKind::PostStart, true),
    ] {
        assert_eq!(initial_success(kind), success, "{kind:?}");
    }
}

/// An Envoy that gives each new metric the next id from 40 on.
#[derive(Default)]
struct FakeEnvoy {
    defined: Vec<String>,
    set: Vec<(usize, u64)>,
}

impl MetricsHost for FakeEnvoy {
    fn define(&mut self, metric: Metric<'_>) -> Option<Definition> {
        let name = metric.tagged_name();
        let known = self.defined.iter().position(|defined| *defined == name);
        let place = known.unwrap_or_else(|| {
            self.defined.push(name);
            self.defined.len() - 1
        });
        Some(Definition { id: 40 + place, is_new: known.is_none() })
    }

    fn increment(&mut self, _id: usize, _metric: Metric<'_>) {}

    fn set(&mut self, id: usize, _metric: Metric<'_>, value: u64) {
        self.set.push((id, value));
    }
}

#[test]
fn initial_metrics_are_those_of_a_healthy_prober() {
    let config =
        Config::parse(br#"{"podIP":"10.0.0.5","probers":{"/app-health/a/livez":{"tcpSocket":{"port":1}}}}"#);
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    let probe = config.probe(b"/app-health/a/livez").expect("a declared probe");
    let mut envoy = FakeEnvoy::default();
    define_initial(probe, &mut envoy);
    let [counter, gauge] =
        [Metric::ProbesTotal(&probe.plan.path, Reason::Ok), Metric::ProbeSuccess(&probe.plan.path)];
    assert_eq!(envoy.defined, [counter.tagged_name(), gauge.tagged_name()]);
    assert_eq!(envoy.set, [(41, 1)]);
    // The ids are remembered, and a new reason is defined when it occurs.
    let timeout = Metric::ProbesTotal(&probe.plan.path, Reason::Timeout);
    assert_eq!(id(probe, Some(Reason::Ok), counter, &mut envoy), Some(40));
    assert_eq!(id(probe, None, gauge, &mut envoy), Some(41));
    assert_eq!(id(probe, Some(Reason::Timeout), timeout, &mut envoy), Some(42));
    assert_eq!(probe.stats.metric(Some(Reason::Timeout)), Some(42));
}
