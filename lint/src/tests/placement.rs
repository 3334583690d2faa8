//! Settings of the injection on a workload instead of its Pod template.

use super::options;
use crate::lint_stream;

const SPEC: &str = "{selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: a}]}}}";

/// Returns path and line of each finding of the rule.
fn found(text: &str) -> Vec<(String, usize)> {
    let report = lint_stream("x.yaml", text, &options(""));
    assert_eq!((report.errors.len(), report.skipped.len()), (0, 0), "{text}");
    let findings = report.findings.into_iter().filter(|finding| finding.rule.code == "AH130");
    findings.map(|finding| (finding.path, finding.origin.line.expect("a line"))).collect()
}

fn deployment(metadata: &str, spec: &str) -> String {
    format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x, {metadata}}}\nspec: {spec}\n")
}

#[test]
fn settings_on_a_workload_have_no_effect() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: x\n  labels: {sidecar.istio.io/inject: 'false'}\n  \
        annotations: {sidecar.istio.io/rewriteAppHTTPProbers: 'false'}\nspec: ";
    let label = "metadata.labels[\"sidecar.istio.io/inject\"]".to_owned();
    let annotation = "metadata.annotations[\"sidecar.istio.io/rewriteAppHTTPProbers\"]".to_owned();
    assert_eq!(found(&format!("{text}{SPEC}\n")), [(label, 5), (annotation, 6)]);
    for name in [
        "sidecar.istio.io/inject",
        "sidecar.istio.io/nativeSidecar",
        "status.sidecar.istio.io/port",
        "traffic.sidecar.istio.io/excludeInboundPorts",
        "proxy.istio.io/config",
        "linkerd.io/inject",
        "config.linkerd.io/proxy-cpu-request",
        "kuma.io/sidecar-injection",
    ] {
        let text = deployment(&format!("annotations: {{{name}: a}}"), SPEC);
        assert_eq!(found(&text), [(format!("metadata.annotations[\"{name}\"]"), 3)]);
    }
}

#[test]
fn a_job_template_is_another_wrong_place() {
    let text = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: x}\nspec:\n  schedule: '* * * * *'\n  jobTemplate:\n    \
        metadata: {labels: {sidecar.istio.io/inject: 'false'}}\n    spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n";
    assert_eq!(
        found(text),
        [("spec.jobTemplate.metadata.labels[\"sidecar.istio.io/inject\"]".to_owned(), 7)]
    );
    let item = deployment("labels: {sidecar.istio.io/inject: 'true'}", SPEC).replace('\n', "\n  ");
    let found = found(&format!("apiVersion: v1\nkind: List\nitems:\n- {item}"));
    assert_eq!(found, [("items[0].metadata.labels[\"sidecar.istio.io/inject\"]".to_owned(), 6)]);
}

#[test]
fn other_settings_are_where_they_belong() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, labels: {sidecar.istio.io/inject: 'false'}}\nspec: {containers: [{name: a, image: a}]}\n";
    assert_eq!(found(pod), []);
    let both = SPEC.replace("app: x}}, spec", "app: x, sidecar.istio.io/inject: 'true'}}, spec");
    assert_eq!(found(&deployment("annotations: {sidecar.istio.io/inject: 'true'}", &both)), []);
    let others = "labels: {app: x, istio.io/rev: default}, annotations: {notsidecar.istio.io/inject: a, app-health.io/lint-ignore: AH014}";
    assert_eq!(found(&deployment(others, SPEC)), []);
}
