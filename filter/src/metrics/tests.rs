use std::collections::BTreeSet;

use probe::{ProbeKind, ProbePath, Reason};

use super::{Metric, initial_success};

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
