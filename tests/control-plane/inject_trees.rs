//! Tests `app-health inject` and `lint` with trees of kustomize and Helm: what is not a whole object
//! is left as it is, and named with the reason.

use crate::inject::{Ended, Folder, run};
use serde_json::Value;

const BASE: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    \
    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: web:1\n        \
    ports: [{name: http, containerPort: 8080}]\n        livenessProbe: {httpGet: {path: /live, port: http}}\n        \
    readinessProbe: {httpGet: {path: /ready, port: http}}\n";
const PATCH: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      \
    - name: web\n        readinessProbe: {httpGet: {path: /ready, port: 8080}, timeoutSeconds: 5}\n";

/// Checks that a tree has these lines about skipped files and documents in both commands, and that
/// `inject` changes only these files.
fn check(name: &str, files: &[(&str, &str)], skipped: &[&str], changed: &[&str]) {
    let folder = Folder::new(name, files);
    let check_lines = |ended: &Ended, prefix: &str| {
        for line in skipped {
            assert!(ended.stderr.contains(line), "{prefix}: {line}: {}", ended.stderr);
        }
        assert_eq!(ended.stderr.lines().count(), skipped.len(), "{prefix}: {}", ended.stderr);
    };
    check_lines(&run("lint", &folder.0, &["-R", "."], ""), "lint");
    let ended = run("inject", &folder.0, &["-R", "-f", ".", "--in-place"], "");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    check_lines(&ended, "inject");
    for (file, text) in files {
        let is_changed = folder.read(file) != *text;
        assert_eq!(is_changed, changed.contains(file), "{file}: {}", folder.read(file));
    }
}

#[test]
fn patches_and_kustomizations_are_left_as_they_are() {
    check(
        "kustomize",
        &[
            ("base/deployment.yaml", BASE),
            ("base/kustomization.yaml", "resources: [deployment.yaml]\n"),
            (
                "overlay/kustomization.yaml",
                "resources: [../base]\npatches: [{path: slow.yaml}, {path: ops.yaml}]\n",
            ),
            ("overlay/slow.yaml", PATCH),
            ("overlay/ops.yaml", "- {op: replace, path: /spec/replicas, value: 3}\n"),
            ("other/patch.yaml", PATCH),
            (
                "other/replicas.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n",
            ),
        ],
        &[
            "skipped: ./base/kustomization.yaml: a configuration of kustomize",
            "skipped: ./overlay/kustomization.yaml: a configuration of kustomize",
            "skipped: ./overlay/slow.yaml: a patch of ",
            "skipped: ./overlay/ops.yaml: a patch of ",
            "/patch.yaml:",
            "/replicas.yaml:",
        ],
        &["base/deployment.yaml"],
    );
}

/// Its shape is that of a whole object; only the kustomization tells that it is a patch.
#[test]
fn a_patch_with_all_fields_is_recognized_by_the_kustomization() {
    for (name, kustomization) in [
        ("patches", "resources: [base.yaml]\npatches:\n- path: ../patches/web.yaml\n"),
        ("merge", "resources: [base.yaml]\npatchesStrategicMerge: [../patches/web.yaml]\n"),
        (
            "json",
            "resources: [base.yaml]\npatchesJson6902: [{path: ../patches/web.yaml, target: {kind: Deployment}}]\n",
        ),
        (
            "data",
            "resources: [base.yaml]\nconfigMapGenerator: [{name: c, files: [web.yaml=../patches/web.yaml]}]\n",
        ),
    ] {
        let reason = if name == "data" { "content of a ConfigMap or Secret of " } else { "a patch of " };
        check(
            name,
            &[
                ("overlay/kustomization.yml", kustomization),
                ("overlay/base.yaml", BASE),
                ("patches/web.yaml", BASE),
            ],
            &["skipped: ./overlay/kustomization.yml: ", &format!("skipped: ./patches/web.yaml: {reason}")],
            &["overlay/base.yaml"],
        );
    }
    // A kustomization without extension, in a directory above, and a file that is named.
    let folder = Folder::new(
        "above",
        &[("Kustomization", "patches: [{path: deep/web.yaml}]\n"), ("deep/web.yaml", BASE)],
    );
    let ended = run("inject", &folder.0, &["-f", "deep/web.yaml"], "");
    assert_eq!((ended.code, ended.stdout.as_str()), (0, BASE));
    assert!(ended.stderr.contains("skipped: deep/web.yaml: a patch of "), "{}", ended.stderr);
}

/// The configuration of a plugin names the files, relative to the directory of the kustomization.
#[test]
fn patches_and_data_of_plugins_are_recognized() {
    let transformer = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: web.yaml\n";
    let inline = "transformers:\n- |\n  kind: PatchStrategicMergeTransformer\n  metadata: {name: p}\n  paths: [web.yaml]\n";
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: c}\nfiles: [web.yaml]\n";
    for (name, kustomization, plugin, reason) in [
        ("plugin-file", "transformers: [plugins/a.yaml]\n", transformer, "a patch of "),
        ("plugin-folder", "transformers: [plugins]\n", transformer, "a patch of "),
        ("plugin-inline", inline, "{}", "a patch of "),
        ("plugin-data", "generators: [plugins/a.yaml]\n", generator, "content of a ConfigMap or Secret of "),
    ] {
        let folder = Folder::new(
            name,
            &[
                ("kustomization.yaml", kustomization),
                ("plugins/kustomization.yaml", "resources: [a.yaml]\n"),
                ("plugins/a.yaml", plugin),
                ("web.yaml", BASE),
            ],
        );
        for command in ["inject", "lint"] {
            let ended = run(command, &folder.0, &["-f", "web.yaml"], "");
            let line = format!("skipped: web.yaml: {reason}");
            assert!(ended.code == 0 && ended.stderr.contains(&line), "{name}: {}", ended.stderr);
        }
    }
}

/// The files that it uses as patches are not known, so the user must hear of it.
#[test]
fn a_kustomization_that_cannot_be_parsed_is_an_error() {
    for (name, kustomization, place) in [
        ("kustomization-twice", "patches: [{path: a.yaml}]\npatches: [{path: b.yaml}]\n", "2:1"),
        ("kustomization-open", "patches: [{path: a.yaml}\n", "1:10"),
        ("kustomization-template", "namePrefix: {{ a }}\npatches: [\n", ""),
    ] {
        let folder = Folder::new(name, &[("kustomization.yaml", kustomization), ("web.yaml", BASE)]);
        for command in ["inject", "lint"] {
            let flags: &[&str] = if command == "inject" { &["-R", "-f", "."] } else { &["-R", "."] };
            let ended = run(command, &folder.0, flags, "");
            let line = format!("./kustomization.yaml:{place}");
            assert!(ended.code == 65 && ended.stderr.contains(&line), "{command} {name}: {}", ended.stderr);
        }
    }
}

#[test]
fn charts_are_left_as_they_are() {
    let template = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Release.Name }}\n{{- if .Values.x }}\nspec: {}\n{{- end }}\n";
    let quoted = BASE.replace("image: web:1", "image: \"{{ .Values.image }}\"");
    check(
        "chart",
        &[
            ("Chart.yaml", "apiVersion: v2\nname: web\n"),
            ("values.yaml", "replicas: 1\n"),
            ("values-prod.json", "{\"replicas\": 3}\n"),
            ("templates/web.yaml", template),
            ("templates/quoted.yaml", &quoted),
            ("mkdocs.yml", "site: [\n"),
            ("whole.yaml", BASE),
        ],
        &[
            "./Chart.yaml:",
            "./values.yaml:",
            "./values-prod.json:",
            "skipped: ./templates/web.yaml: a template",
            "./templates/quoted.yaml:",
            "skipped: ./mkdocs.yml: not a Kubernetes manifest: ",
        ],
        &["whole.yaml"],
    );
}

/// Only the shape of a document tells what it is.
#[test]
fn stdin_is_read_document_by_document() {
    let folder = Folder::new("stdin-partial", &[]);
    let values = "replicas: 1 # as it is\n";
    let ended = run("inject", &folder.0, &[], &format!("{PATCH}---\n{values}---\n{BASE}"));
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.starts_with(&format!("{PATCH}---\n{values}---\n")), "{}", ended.stdout);
    assert!(ended.stdout.contains("/app-health/web/livez"));
    assert!(ended.stderr.starts_with("app-health: skipped: stdin:1: document 1 (Deployment/web): not a whole object: container web has no image"));
    assert!(
        ended.stderr.contains("skipped: stdin:10: document 2: not a Kubernetes object"),
        "{}",
        ended.stderr
    );
    // A template that the user names is expected to be a manifest.
    let ended = run("inject", &folder.0, &[], "kind: Pod\na: {{ .b }}: [\n");
    assert_eq!(ended.code, 65);
    assert!(ended.stderr.contains("use the output of helm template"), "{}", ended.stderr);
}

#[test]
fn other_kinds_are_injected_with_a_flag() {
    let game = BASE.replace("apps/v1", "example.com/v1").replace("kind: Deployment", "kind: Game");
    let folder = Folder::new(
        "kinds",
        &[
            ("game.yaml", &game),
            (
                "rollout.yaml",
                &BASE.replace("apps/v1", "argoproj.io/v1alpha1").replace("kind: Deployment", "kind: Rollout"),
            ),
        ],
    );
    let ended = run("inject", &folder.0, &["-f", "."], "");
    assert_eq!(ended.code, 0);
    assert!(
        ended.stdout.starts_with(&game) && ended.stdout.contains("/app-health/web/readyz"),
        "{}",
        ended.stdout
    );
    let hint = "skipped: ./game.yaml:1: document 1 (Game/web): the kind is not known; if its Pods are created from spec.template, use --template-path Game.example.com=spec.template";
    assert!(ended.stderr.contains(hint), "{}", ended.stderr);
    let flag = ["--template-path", "Game.example.com=spec.template"];
    let ended = run("inject", &folder.0, &[&["-f", "game.yaml"], &flag[..]].concat(), "");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("/app-health/web/readyz"));
    for arguments in [&["-f", "."][..], &[&["-f", "."], &flag[..]].concat()] {
        let ended = run("lint", &folder.0, arguments, "");
        let pods = if arguments.len() == 2 { "1 Pod in" } else { "2 Pods in" };
        assert!(ended.code == 0 && ended.stdout.contains(pods), "{}", ended.stdout);
    }
    let ended = run("inject", &folder.0, &["--template-path", "Game=spec.template.spec"], "");
    assert_eq!(ended.code, 64);
    assert!(ended.stderr.contains("must be the field with metadata and spec of the Pod"), "{}", ended.stderr);
}

/// Files that are no JSON are not a part of JSON output, and two templates stay two documents.
#[test]
fn skipped_files_do_not_break_the_stream() {
    let template = "{{- if .Values.enabled }}\napiVersion: v1\nkind: Service\n{{- end }}\n";
    let data = "{\"kind\": \"Data\"}\n";
    let folder = Folder::new(
        "formats",
        &[
            ("in/a.yaml", template),
            ("in/b.yaml", template),
            ("in/c.json", data),
            ("in/d.json", data),
            ("in/e.yaml", BASE),
            ("in/kustomization.yaml", "configMapGenerator: [{name: c, files: [c.json, d.json]}]\n"),
        ],
    );
    let yaml = run("inject", &folder.0, &["-f", "in"], "");
    let start = format!("{template}---\n{template}---\n{data}{data}---\napiVersion: apps/v1\n");
    assert!(yaml.stdout.starts_with(&start), "{}", yaml.stdout);
    let json = run("inject", &folder.0, &["-f", "in", "--format", "json"], "");
    let values: Vec<Value> = serde_json::Deserializer::from_str(&json.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {}", json.stdout));
    let kinds: Vec<&str> = values.iter().filter_map(|value| value["kind"].as_str()).collect();
    assert_eq!(kinds, ["Data", "Data", "Deployment"]);
    for file in ["a.yaml", "b.yaml", "kustomization.yaml"] {
        let start = format!("app-health: skipped: in/{file}: ");
        let line = json.stderr.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        assert!(line.ends_with("; the JSON output does not contain it"), "{}", json.stderr);
    }
    let ended = run("inject", &folder.0, &["-f", "in", "--format", "json", "--in-place"], "");
    assert_eq!((ended.code, folder.read("in/a.yaml").as_str()), (0, template), "{}", ended.stderr);
}

/// A manifest that is broken is an error, also if it is in one line.
#[test]
fn a_broken_manifest_in_a_directory_is_refused() {
    let broken = r#"{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a"}}}"#;
    let folder = Folder::new("broken", &[("in/a.json", broken)]);
    for arguments in [["inject", "-f"], ["lint", "-R"]] {
        let ended = run(arguments[0], &folder.0, &[arguments[1], "in"], "");
        assert_eq!(ended.code, 65, "{}", ended.stderr);
        assert!(ended.stderr.contains("in/a.json:1:"), "{}", ended.stderr);
    }
}
