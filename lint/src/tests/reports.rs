//! What a report contains besides the rules: kinds, suppression, lines, templates, errors.

use std::collections::BTreeMap;

use injector::skip::Skip;

use super::{codes, lint_example, options};
use crate::{StreamReport, lint_stream};

const CONTAINERS: &str = "containers: [{name: app, image: shop, ports: [{containerPort: 8080}]}]";

fn lint(text: &str) -> StreamReport {
    lint_stream("shop.yaml", text, &options(""))
}

/// The spec of a workload, in which `FIELDS` are those of the Pod.
fn workload(fields: &str) -> String {
    format!(
        "spec: {{selector: {{matchLabels: {{app: shop}}}}, template: {{metadata: {{labels: {{app: shop}}}}, spec: {{{fields}}}}}}}"
    )
}

#[test]
fn the_pods_of_each_kind_are_linted() {
    let path = "spec.template.spec.containers[0]";
    let workloads = [
        ("v1", "Pod", format!("spec: {{{CONTAINERS}}}"), "spec.containers[0]"),
        ("v1", "PodTemplate", format!("template: {{spec: {{{CONTAINERS}}}}}"), "template.spec.containers[0]"),
        ("v1", "ReplicationController", workload(CONTAINERS), path),
        ("apps/v1", "Deployment", workload(CONTAINERS), path),
        ("apps/v1", "StatefulSet", workload(CONTAINERS), path),
        ("apps/v1", "DaemonSet", workload(CONTAINERS), path),
        ("apps/v1", "ReplicaSet", workload(CONTAINERS), path),
        ("argoproj.io/v1alpha1", "Rollout", workload(CONTAINERS), path),
        ("apps.openshift.io/v1", "DeploymentConfig", workload(CONTAINERS), path),
    ];
    for (version, kind, spec, path) in workloads {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: shop}}\n{spec}\n");
        let report = lint(&text);
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (finding.rule.code, finding.object(), finding.path.as_str(), finding.origin.line))
            .collect();
        assert_eq!(found, [("AH014", format!("{kind}/shop"), path, Some(4))], "{text}");
        let item = text.replace('\n', "\n  ");
        let list = lint(&format!("apiVersion: v1\nkind: List\nitems:\n- {item}"));
        let paths: Vec<_> = list.findings.iter().map(|finding| finding.path.clone()).collect();
        assert_eq!(paths, [format!("items[0].{path}")]);
    }
}

#[test]
fn pods_of_jobs_need_no_readiness_probe() {
    for (kind, spec) in [
        ("Job", format!("spec: {{template: {{spec: {{restartPolicy: Never, {CONTAINERS}}}}}}}")),
        (
            "CronJob",
            format!(
                "spec: {{schedule: '* * * * *', jobTemplate: {{spec: {{template: {{spec: {{restartPolicy: Never, {CONTAINERS}}}}}}}}}}}"
            ),
        ),
    ] {
        let report = lint(&format!("apiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: x}}\n{spec}\n"));
        assert_eq!((report.pods, codes(&report)), (1, [].into()), "{kind}");
    }
}

/// The annotation counts on the object, on an item of a list, and on the Pod template.
#[test]
fn an_annotation_suppresses_rules() {
    let deployment = |object: &str, template: &str| {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: shop, annotations: {{{object}}}}}\nspec:\n  \
             selector: {{matchLabels: {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b}}, annotations: {{{template}}}}}\n    spec: {{{CONTAINERS}}}\n"
        )
    };
    let ignore = |codes: &str| format!("app-health.io/lint-ignore: {codes}");
    let cases = [
        (deployment("", ""), 0, vec![("AH014", 8)]),
        (deployment(&ignore("AH014"), ""), 1, vec![]),
        (deployment("", &ignore("'AH003, AH014'")), 1, vec![]),
        (deployment(&ignore("AH003"), ""), 0, vec![("AH014", 8)]),
        (deployment(&ignore("AH014 no-readiness-probe"), ""), 1, vec![("AH016", 3)]),
        (deployment("", &ignore("7")), 0, vec![("AH016", 7), ("AH014", 8)]),
        (deployment(&ignore("ah014"), ""), 1, vec![]),
        (deployment("app-health.io/lint_ignore: AH014", ""), 0, vec![("AH016", 3), ("AH014", 8)]),
        (deployment("", "apphealth.io/ignore: AH014"), 0, vec![("AH016", 7), ("AH014", 8)]),
    ];
    for (text, suppressed, expected) in cases {
        let report = lint(&text);
        let found: Vec<_> = report
            .findings
            .iter()
            .map(|finding| (finding.rule.code, finding.origin.line.expect("a line")))
            .collect();
        assert_eq!((report.suppressed, found), (suppressed, expected), "{text}");
    }
}

#[test]
fn documents_have_their_own_lines() {
    let pod = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: shop}}\nspec:\n  {CONTAINERS}\n");
    let report = lint(&format!("# shop\n---\n{pod}---\nkind: [\n---\n{pod}"));
    let found: BTreeMap<usize, Option<usize>> =
        report.findings.iter().map(|finding| (finding.origin.document, finding.origin.line)).collect();
    assert_eq!(found, BTreeMap::from([(1, Some(7)), (3, Some(15))]));
    assert_eq!(report.errors.len(), 1);
    assert_eq!((report.errors[0].line, report.errors[0].number), (9, 2));
}

#[test]
fn templates_are_not_linted() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: shop}\nspec:\n  containers:\n  - name: app\n    image: shop\n    \
        readinessProbe: {httpGet: {port: '{{ .Values.port }}'}}\n";
    let report = lint(text);
    assert_eq!((report.skipped, report.findings.len()), (vec![(1, Skip::Template)], 0));
    // Elsewhere in an object, the same characters are not a template.
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {a: '{{ x }}'}\n";
    assert_eq!((lint(text).skipped.len(), lint(text).objects), (0, 1));
}

#[test]
fn other_documents_have_no_findings() {
    for text in ["", "# only a comment\n", "a: 1\n", "- 1\n", "kind: Service\napiVersion: v1\n", "null\n"] {
        let report = lint(text);
        assert!(report.findings.is_empty() && report.errors.is_empty(), "{text}: {report:?}");
    }
}

/// A patch of kustomize is a part of an object: its ports may be in another file.
#[test]
fn patches_are_not_linted() {
    let deployment =
        |spec: &str| format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}\n{spec}\n");
    let probe = "name: a, readinessProbe: {httpGet: {port: http}}";
    for text in [
        deployment("spec: {replicas: 3}"),
        deployment(""),
        deployment("spec: {template: {spec: {nodeName: a}}}"),
        deployment(&workload(&format!("containers: [{{{probe}}}]"))),
        deployment(&workload(&format!("containers: [{{{probe}}}, {{name: b, image: b}}]"))),
        deployment(&format!("spec: {{template: {{spec: {{containers: [{{image: a, {probe}}}]}}}}}}")),
    ] {
        let report = lint(&text);
        let [(1, Skip::Partial(_))] = report.skipped.as_slice() else { panic!("{text}: {report:?}") };
        assert_eq!(report.findings, []);
    }
    for text in [
        deployment("spec: {template: 1}"),
        deployment(&workload("containers: {}")),
        deployment(&workload(&format!("containers: [{{image: a, {probe}}}]"))),
    ] {
        let report = lint(&text);
        assert_eq!((report.skipped.len(), report.findings.len()), (0, 1), "{text}: {report:?}");
    }
}

/// A malformed item of a list does not hide the findings of the others.
#[test]
fn items_of_a_list_are_linted_one_by_one() {
    let pod = |name: &str| {
        format!("- apiVersion: v1\n  kind: Pod\n  metadata: {{name: {name}}}\n  spec: {{{CONTAINERS}}}\n")
    };
    let broken =
        "- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {name: b}\n  spec: {template: 1}\n- null\n";
    let report = lint(&format!("apiVersion: v1\nkind: List\nitems:\n{}{broken}{}", pod("a"), pod("c")));
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            (finding.rule.code, finding.name.as_str(), finding.origin.line, finding.message.as_str())
        })
        .collect();
    let ports = "it declares ports, and no container of the Pod has a readinessProbe";
    assert_eq!(
        found,
        [
            ("AH014", "a", Some(7), ports),
            ("AH100", "b", Some(11), "items[1].spec.template: must be a mapping"),
            ("AH100", "", Some(12), "items[2]: must be a mapping"),
            ("AH014", "c", Some(16), ports),
        ]
    );
    assert_eq!((report.pods, report.skipped.len()), (2, 0));
}

/// An item that is not linted does not hide the findings of the others.
#[test]
fn items_that_are_not_linted_are_named() {
    let rollout = "- apiVersion: argoproj.io/v1alpha1\n  kind: Rollout\n  spec: {workloadRef: {kind: Deployment, name: x}}\n";
    let wrong = "- apiVersion: extensions/v1beta1\n  kind: Deployment\n  metadata: {name: w}\n  \
        spec: {template: {spec: {containers: [{image: a}]}}}\n";
    let pod = format!("- apiVersion: v1\n  kind: Pod\n  metadata: {{name: a}}\n  spec: {{{CONTAINERS}}}\n");
    let report = lint(&format!("apiVersion: v1\nkind: List\nitems:\n{rollout}{wrong}{pod}"));
    let codes: Vec<&str> = report.findings.iter().map(|finding| finding.rule.code).collect();
    // A rule reports the wrong apiVersion.
    assert_eq!((codes, report.pods, report.skipped.len()), (vec!["AH019", "AH014"], 1, 0));
    let [(1, item)] = report.skipped_items.as_slice() else { panic!("{report:?}") };
    assert_eq!(
        (item.field.as_str(), &item.reason),
        ("items[0]", &Skip::DefinedElsewhere("Deployment/x".to_owned()))
    );
}

#[test]
fn a_hook_without_end_and_the_field_that_selects_windows_are_named() {
    let text = "kind: Pod\napiVersion: v1\nspec:\n  nodeSelector: {kubernetes.io/os: windows}\n  containers:\n  \
        - {name: app, image: shop, lifecycle: {preStop: {exec: {command: [sleep, infinity]}}}}\n";
    let report = lint(text);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.rule.code, finding.path.as_str(), finding.message.as_str()))
        .collect();
    let hook = "the hook never ends, and terminationGracePeriodSeconds is 30";
    assert!(
        found.contains(&("AH013", "spec.containers[0].lifecycle.preStop.exec.command", hook)),
        "{found:?}"
    );
    let windows = "spec.nodeSelector: the Pod runs on Windows, and the sidecar needs Linux";
    assert!(found.contains(&("AH129", "spec.nodeSelector", windows)), "{found:?}");
}

/// Comparing each container or finding with all others would take minutes.
#[test]
fn a_pod_with_many_containers_is_linted_in_linear_time() {
    const COUNT: usize = 6_000;
    let container = "  - {name: app, image: x, livenessProbe: {httpGet: {port: q}}}\n".repeat(COUNT);
    let codes = "AH001,".repeat(COUNT);
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{app-health.io/lint-ignore: \"{codes}\"}}}}\nspec:\n  containers:\n{container}"
    );
    let report = lint_example(&text);
    assert!(report.findings.len() >= COUNT, "{}", report.findings.len());
}
