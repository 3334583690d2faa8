use super::*;
use crate::yaml;

/// Returns why a document is skipped; empty if it is not.
fn reason(text: &str, kinds: &Kinds) -> String {
    let document = yaml::value(text).expect(text);
    Skip::of(&document, text, kinds).map(|skip| skip.to_string()).unwrap_or_default()
}

/// Checks the beginning of the reason.
fn check(text: &str, expected: &str) {
    let found = reason(text, &Kinds::default());
    let is_expected = if expected.is_empty() { found.is_empty() } else { found.starts_with(expected) };
    assert!(is_expected, "{text}\n{found:?} instead of {expected:?}");
}

const SPEC: &str = "{selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: a}]}}}";

fn deployment(spec: &str) -> String {
    format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}\nspec: {spec}\n")
}

#[test]
fn whole_objects_are_not_skipped() {
    let template = "{metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: a}]}}";
    let finite = "{spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}";
    for (version, kind, rest) in [
        ("apps/v1", "Deployment", format!("spec: {SPEC}")),
        ("apps/v1", "StatefulSet", format!("spec: {SPEC}")),
        ("argoproj.io/v1alpha1", "Rollout", format!("spec: {SPEC}")),
        ("v1", "ReplicationController", format!("spec: {{template: {template}}}")),
        ("apps.openshift.io/v1", "DeploymentConfig", format!("spec: {{template: {template}}}")),
        ("v1", "PodTemplate", format!("template: {template}")),
        ("v1", "Pod", "spec: {containers: [{name: a, image: a}]}".to_owned()),
        ("batch/v1", "Job", format!("spec: {{template: {finite}}}")),
        (
            "batch/v1",
            "CronJob",
            format!("spec: {{schedule: '* * * * *', jobTemplate: {{spec: {{template: {finite}}}}}}}"),
        ),
        ("v1", "ConfigMap", "data: {a: '{{ x }}'}".to_owned()),
        ("v1", "Service", "spec: {ports: [{port: 80}]}".to_owned()),
        ("example.com/v1", "AllowList", "items: [a, b]".to_owned()),
    ] {
        check(&format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n{rest}\n"), "");
    }
    check("", "");
    check("# nothing\n", "");
    // A field of another type is an error and not a patch.
    check(&deployment("{selector: {}, template: 1}"), "");
    check(&deployment("{selector: {}, template: {metadata: {labels: {a: b}}, spec: {containers: {}}}}"), "");
}

#[test]
fn a_part_of_an_object_is_a_patch() {
    let with = |from: &str, to: &str| deployment(&SPEC.replacen(from, to, 1));
    for (text, why) in [
        (deployment("{replicas: 3}"), "it has no spec.template"),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n".to_owned(), "it has no spec"),
        (deployment("{template: {metadata: {labels: {a: b}}}}"), "it has no spec.template.spec"),
        (deployment("{template: {spec: {nodeName: a}}}"), "it has no spec.template.spec.containers"),
        (with("[{name: a, image: a}]", "[]"), "spec.template.spec.containers is empty"),
        (with("image: a", "resources: {}"), "container a has no image"),
        (with("{name: a, image: a}", "{name: a}, {name: b, image: b}"), "container a has no image"),
        (with("{name: a, image: a}", "{image: null}"), "a container in spec.template.spec.containers has no image"),
        (with("containers:", "initContainers: [{name: i}], containers:"), "container i has no image"),
        (with("selector: {matchLabels: {app: x}}, ", ""), "it has no spec.selector"),
        (with("metadata: {labels: {app: x}}, ", ""), "it has no spec.template.metadata.labels"),
        (with("name: a,", "name: a, $patch: replace,"), "it contains $patch"),
        (with("selector:", "$retainKeys: [type], selector:"), "it contains $retainKeys"),
        (with("name: a,", "$setElementOrder/ports: [], name: a,"), "it contains $setElementOrder/ports"),
        (
            "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{name: a, image: a}]}}}".to_owned(),
            "it has no spec.template.spec.restartPolicy",
        ),
        (
            "apiVersion: batch/v1\nkind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}".to_owned(),
            "it has no spec.schedule",
        ),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a}]}".to_owned(), "container a has no image"),
    ] {
        check(&text, &format!("not a whole object: {why}"));
    }
}

/// A flag for one template must not hide that the Pods of the others are not injected.
#[test]
fn templates_that_no_flag_names_are_listed() {
    let pod = "{spec: {containers: [{name: a, image: a}]}}";
    let game = format!(
        "apiVersion: example.com/v1\nkind: Game\nmetadata: {{name: x}}\nspec: {{head: {{template: {pod}}}, headless: {{template: {pod}}}, workers: [{{template: {pod}}}]}}\n"
    );
    let skipped = |text: &str, flags: &[&str]| -> Vec<String> {
        let flags: Vec<_> = flags.iter().map(|flag| flag.parse().expect("a path")).collect();
        let found = ManifestPods::of(&yaml::value(text).expect("YAML"), &Kinds::new(&flags));
        found.skipped.iter().map(ToString::to_string).collect()
    };
    let other = "spec.headless.template (Game/x): no flag names this Pod template; use --template-path Game.example.com=spec.headless.template too";
    let listed = "spec.workers[0].template (Game/x): no flag can name this Pod template in a list; inject the Pods through the webhook";
    assert_eq!(skipped(&game, &["Game=spec.head.template"]), [other, listed]);
    assert_eq!(skipped(&game, &["Game=spec.head.template", "Game=spec.headless.template"]), [listed]);
    let item = list(&[game]);
    assert!(
        skipped(&item, &["Game=spec.head.template"])[0]
            .starts_with("items[0].spec.headless.template (Game/x): ")
    );
    assert_eq!(skipped(&deployment(SPEC), &[]), Vec::<String>::new());
}

/// Returns a list of these documents.
fn list(documents: &[String]) -> String {
    let items: String =
        documents.iter().map(|item| format!("- {}\n", item.trim_end().replace('\n', "\n  "))).collect();
    format!("apiVersion: v1\nkind: List\nitems:\n{items}")
}

#[test]
fn items_of_a_list_are_skipped_one_by_one() {
    let game = "apiVersion: example.com/v1\nkind: Game\nmetadata: {name: x}\nspec: {template: {spec: {containers: [{image: a}]}}}";
    let service = game.replace("example.com/v1", "serving.knative.dev/v1").replace("Game", "Service");
    let rollout =
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec: {workloadRef: {kind: Deployment, name: x}}";
    let config = "apiVersion: v1\nkind: ConfigMap\ndata: {a: '{{ x }}'}";
    let template = deployment(&SPEC.replacen("image: a", "image: '{{ x }}'", 1));
    let items = [
        game.to_owned(),
        service,
        deployment(SPEC),
        rollout.to_owned(),
        config.to_owned(),
        deployment("{replicas: 3}"),
        template.clone(),
        list(&[template, deployment(SPEC)]),
    ];
    let text = list(&items);
    assert_eq!(reason(&text, &Kinds::default()), "");
    let found = ManifestPods::of(&yaml::value(&text).expect("YAML"), &Kinds::default());
    let pods: Vec<String> = found.pods.iter().map(|pod| pod.as_ref().expect("a Pod").field("")).collect();
    assert_eq!(pods, ["items[2].spec.template", "items[7].items[1].spec.template"]);
    let skipped: Vec<String> = found.skipped.iter().map(ToString::to_string).collect();
    for (line, start) in skipped.iter().zip([
        "items[0] (Game/x): the kind is not known",
        "items[1] (Service/x): Service/x: Knative",
        "items[3] (Rollout): its Pods are defined in Deployment/x",
        "items[5] (Deployment/x): not a whole object: it has no spec.template",
        "items[6] (Deployment/x): a template",
        "items[7].items[0] (Deployment/x): a template",
    ]) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(skipped.len(), 6, "{skipped:#?}");
    // Injection would remove the comment.
    check(&format!("# {{{{- if .Values.enabled }}}}\n{text}"), "a template");
}

#[test]
fn one_of_two_named_templates_is_enough() {
    let kinds = Kinds::new(&["Game=spec.a".parse().expect("a path"), "Game=spec.b".parse().expect("a path")]);
    let game = |spec: &str| format!("apiVersion: example.com/v1\nkind: Game\nspec: {spec}\n");
    let pod = "{spec: {containers: [{name: a, image: a}]}}";
    assert_eq!(reason(&game(&format!("{{a: {pod}}}")), &kinds), "");
    assert_eq!(reason(&game(&format!("{{b: {pod}}}")), &kinds), "");
    assert!(reason(&game("{}"), &kinds).starts_with("not a whole object: it has no spec.a"));
    let found = reason(&game(&format!("{{a: {pod}, b: {{spec: {{}}}}}}")), &kinds);
    assert!(found.starts_with("not a whole object: it has no spec.b.spec.containers"), "{found}");
}

#[test]
fn openshift_sets_images_by_triggers() {
    let config = |names: &str| {
        format!(
            "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nspec: {{triggers: [{{type: ImageChange, imageChangeParams: {{containerNames: [{names}]}}}}], template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: a}}]}}}}}}"
        )
    };
    check(&config("a"), "");
    check(&config("b"), "not a whole object: container a has no image");
}

#[test]
fn other_documents_are_named() {
    for (text, why) in [
        ("a: 1", "not a Kubernetes object"),
        ("kind: Pod\nspec: {containers: []}", "not a Kubernetes object"),
        ("apiVersion: v2\nname: chart", "not a Kubernetes object"),
        ("- 1", "not a Kubernetes object"),
        ("text", "not a Kubernetes object"),
        ("[]", "not a Kubernetes object"),
        ("- {op: replace, path: /spec/replicas, value: 3}", "a JSON patch"),
        ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization", "a configuration of kustomize"),
        ("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component", "a configuration of kustomize"),
    ] {
        check(text, why);
    }
}

#[test]
fn templates_are_recognized_by_fields_that_must_be_known() {
    let with = |from: &str, to: &str| deployment(&SPEC.replacen(from, to, 1));
    for text in [
        with("image: a", "image: '{{ .Values.image }}'"),
        with("name: a", "name: '{{ .Chart.Name }}'"),
        with("image: a", "image: a, readinessProbe: {httpGet: {path: '{{ .Values.path }}'}}"),
        with("image: a", "image: a, ports: [{containerPort: '{{ .Values.port }}'}]"),
        with("app: x", "app: '{{ .Release.Name }}'"),
        format!("# {{{{- if .Values.enabled }}}}\n{}", deployment(SPEC)),
    ] {
        check(&text, "a template");
    }
    for text in [
        with("image: a", "image: a, args: ['--format={{.Name}}']"),
        with("image: a", "image: a, command: ['{{ x }}']"),
        with("image: a", "image: a, env: [{name: A, value: '{{ x }}'}]"),
        // No command is rewritten.
        with("image: a", "image: a, livenessProbe: {exec: {command: [docker, --format, '{{ x }}']}}"),
        with("image: a", "image: a, lifecycle: {preStop: {exec: {command: ['{{ x }}']}}}"),
        with("labels:", "annotations: {vault: '{{ with secret }}'}, labels:"),
        // The lines of a block scalar are no comments.
        "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    vault: |\n      # {{ with secret }}\n      a\nspec:\n  \
            # a comment\n  containers:\n  - {name: a, image: a}\n".to_owned(),
        "---\napiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: a\n    args:\n    - >\n      \
            # {{ x }}\n    - \"a\n      # {{ x }}\"\n".to_owned(),
    ] {
        check(&text, "");
    }
}

#[test]
fn unknown_kinds_with_a_pod_template_are_named_with_the_flag() {
    let game =
        |spec: &str| format!("apiVersion: example.com/v1\nkind: Game\nmetadata: {{name: x}}\nspec: {spec}\n");
    let pod = "{spec: {containers: [{name: a, image: a}]}}";
    for (text, why) in [
        (
            game(&format!("{{template: {pod}}}")),
            "the kind is not known; if its Pods are created from spec.template, use --template-path Game.example.com=spec.template",
        ),
        (
            game(&format!("{{jobManager: {{podTemplate: {pod}}}}}")),
            "the kind is not known; if its Pods are created from spec.jobManager.podTemplate",
        ),
        (
            game(&format!("{{groups: [{{template: {pod}}}]}}")),
            "the kind Game.example.com is not known, and spec.groups[0].template is in a list; inject the Pods through the webhook",
        ),
        (
            game("{players: [{readinessProbe: {httpGet: {path: /, port: 80}}}]}"),
            "the kind Game.example.com is not known, so spec.players[0].readinessProbe is not changed; inject the Pods through the webhook",
        ),
        (game("{readinessProbe: {exec: {command: [a]}}, livenessProbe: {httpGet: /}}"), ""),
        // The schema of a definition.
        (game("{properties: {readinessProbe: {properties: {httpGet: {type: object}}}}}"), ""),
        (game("{template: {spec: {replicas: 1}}}"), ""),
        (game("{template: {spec: {containers: {type: array}}}}"), ""),
        (
            format!("apiVersion: extensions/v1beta1\nkind: Deployment\nspec: {{template: {pod}}}"),
            "wrong apiVersion or kind: Kubernetes has a Deployment in apps/v1",
        ),
    ] {
        check(&text, why);
    }
    let kinds = Kinds::new(&["Game=spec.template".parse().expect("a path")]);
    assert_eq!(reason(&game(&format!("{{template: {pod}}}")), &kinds), "");
    let missing = reason(&game("{size: 3}"), &kinds);
    let why = "not a whole object: it has no spec.template, and --template-path names spec.template";
    assert!(missing.starts_with(why), "{missing}");
}

#[test]
fn pods_that_another_object_defines_are_not_injected_here() {
    let rollout = "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nspec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}";
    check(rollout, "its Pods are defined in Deployment/shop, to which spec.workloadRef refers");
    let service = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: shop}\nspec: {template: {spec: {containers: [{image: a}]}}}";
    check(service, "Service/shop: Knative validates and rewrites the template itself");
}
