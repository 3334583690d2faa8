//! Golden tests: each `x.yaml` in `testdata` is a situation, and `x.txt` what is printed about it.
//!
//! The first line of a situation is `# VERDICT CODE: what is wrong`, and a test compares both with
//! the result, so that rewriting the golden files does not hide a wrong cause. `base` names a
//! situation in `testdata/base`; `set` changes fields of it, by their JSON pointers, and `remove`
//! removes some. `workload` has the fields of a workload, and its `pods` are situations.
//! `UPDATE_GOLDEN=1` rewrites the golden files.

mod corpus;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::container::list;
use crate::object::{Kind, ObjectName};
use crate::report::Report;
use crate::situation::{Fetched, Situation};
use crate::{Code, Verdict, WorkloadSituation, text};

const NOW: &str = "2026-03-01T12:00:00Z";

/// The situations that others change.
static BASES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let base = |name: &str| {
        let text = fs::read_to_string(folder().join("base").join(format!("{name}.yaml"))).expect("a base");
        (name.to_owned(), yaml(&text))
    };
    ["injected", "new", "plain"].map(base).into()
});

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the paths and texts of all situations in order.
fn inputs() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder()).expect("the folder of the goldens");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).expect("an input"))).collect()
}

/// Sets a field by its JSON pointer, and creates the objects on the way to it. `-` appends to a list.
fn set(value: &mut Value, pointer: &str, new: Value) {
    let mut place = value;
    for key in pointer.split('/').skip(1).map(|key| key.replace("~1", "/")) {
        if place.is_null() {
            *place = if key == "-" { json!([]) } else { json!({}) };
        }
        if let (Value::Array(elements), "-") = (&mut *place, key.as_str()) {
            elements.push(Value::Null);
        }
        place = match place {
            Value::Array(elements) => {
                let last = elements.len().saturating_sub(1);
                &mut elements[key.parse().unwrap_or(last)]
            }
            Value::Object(fields) => fields.entry(key).or_insert(Value::Null),
            other => panic!("{pointer}: {other} has no fields"),
        };
    }
    *place = new;
}

/// Applies `set` and `remove` to the base of a situation.
fn situation(overlay: &Value) -> Situation {
    let mut value = BASES[overlay["base"].as_str().expect("a base")].clone();
    let none = Map::new();
    for (pointer, new) in overlay["set"].as_object().unwrap_or(&none) {
        set(&mut value, pointer, new.clone());
    }
    for pointer in overlay["remove"].as_array().into_iter().flatten() {
        let (parent, key) = pointer.as_str().and_then(|pointer| pointer.rsplit_once('/')).expect("a pointer");
        let parent = value.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        assert!(parent.remove(&key.replace("~1", "/")).is_some(), "{pointer} does not exist");
    }
    serde_json::from_value(value).expect("a situation")
}

fn report(text: &str) -> Report {
    report_of(&yaml(text))
}

fn report_of(input: &Value) -> Report {
    let workload = &input["workload"];
    if workload.is_null() {
        let situation = situation(input);
        let object = ObjectName::parse(&format!("pod/{}", situation.name)).expect("a name");
        return Report::of_pod(object, &situation);
    }
    let fetched = |key: &str| match &workload[key] {
        Value::Null => Fetched::Found(Vec::new()),
        value => serde_json::from_value(value.clone()).expect("the result of a request"),
    };
    let pods = match &workload["pods"] {
        Value::String(_) => {
            serde_json::from_value(workload["pods"].clone()).expect("the result of a request")
        }
        pods => Fetched::Found(list(pods).iter().map(situation).collect()),
    };
    Report::of_workload(&WorkloadSituation {
        object: ObjectName::parse(workload["object"].as_str().expect("a name")).expect("a name"),
        namespace: "shop".to_owned(),
        value: serde_json::from_value(workload["value"].clone()).expect("the result of a request"),
        replica_sets: fetched("replicaSets"),
        pods,
        omitted: workload["omitted"].as_u64().and_then(|omitted| usize::try_from(omitted).ok()).unwrap_or(0),
        events: fetched("events"),
    })
}

/// Returns true if golden files are to be rewritten.
fn is_update() -> bool {
    std::env::vars_os().any(|(name, _)| name == "UPDATE_GOLDEN")
}

#[test]
fn goldens() {
    let update = is_update();
    let mut wrong = Vec::new();
    for (file, input) in inputs() {
        let actual = text::render(&report(&input), NOW);
        let golden = file.with_extension("txt");
        if update {
            fs::write(&golden, &actual).expect("the golden can be written");
        } else if fs::read_to_string(&golden).ok().as_ref() != Some(&actual) {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and review the diff: {wrong:#?}");
    assert!(inputs().len() >= 40, "golden files are missing");
}

#[test]
fn verdicts_and_causes_are_those_of_the_first_line() {
    let mut wrong = Vec::new();
    for (file, input) in inputs() {
        let first = input.lines().next().unwrap_or_default();
        let expected =
            first.strip_prefix("# ").and_then(|line| line.split_once(": ")).expect("a first line").0;
        let report = report(&input);
        let code = report.cause.as_ref().map(|cause| cause.code.word());
        let found = [Some(report.verdict.word()), code].into_iter().flatten().collect::<Vec<_>>().join(" ");
        if found != expected {
            wrong.push(format!("{}: {found}, expected {expected}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Each code is the main cause or a note of at least one situation.
#[test]
fn every_code_has_a_situation() {
    let mut found: Vec<Code> = Vec::new();
    for (_, input) in inputs() {
        let report = report(&input);
        found.extend(report.cause.iter().chain(&report.findings).map(|finding| finding.code));
        let explanations = report.pods.iter().map(|group| &group.explanation);
        found.extend(
            explanations.flat_map(|each| each.cause.iter().chain(&each.findings)).map(|finding| finding.code),
        );
    }
    let missing: Vec<&str> =
        Code::ALL.into_iter().filter(|code| !found.contains(code)).map(Code::word).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn the_page_lists_every_code_and_exit_code() {
    let page = include_str!("../../docs/explain.md");
    for code in Code::ALL {
        assert!(page.contains(&format!("| `{}` |", code.word())), "{}", code.word());
    }
    for verdict in Verdict::ALL {
        assert!(
            page.contains(&format!("| {} | {}", verdict.exit_code(), verdict.word())),
            "{}",
            verdict.word()
        );
    }
}

/// A second request a moment later has other latencies and counts, which alone is no change.
#[test]
fn the_state_has_no_ages() {
    let mut input =
        yaml("base: injected\nset: {/answers/0/result/response: {status: 502, body: 'refused: x'}}");
    let object = || ObjectName::parse("pod/web").expect("a name");
    let before = Report::of_pod(object(), &situation(&input));
    set(&mut input, "/set/~1answers~10~1milliseconds", 77.into());
    set(&mut input, "/set/~1now", "2026-03-01T12:00:09Z".into());
    let after = Report::of_pod(object(), &situation(&input));
    assert_ne!(before, after);
    assert_eq!(before.state(), after.state());
    let recovered = Report::of_pod(object(), &situation(&yaml("base: injected")));
    assert_ne!(before.state(), recovered.state());
}

#[test]
fn missing_permissions_name_the_rules() {
    let report = report(
        "base: injected\nset: {/events: forbidden, /node: forbidden, /webhook: forbidden, /namespaceObject: forbidden, /metrics: forbidden, /sidecarLog: forbidden}",
    );
    let rules: Vec<String> = report.missing_rules.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "Role: {apiGroups: [\"\"], resources: [events], verbs: [list]}",
            "Role: {apiGroups: [\"\"], resources: [pods/proxy], verbs: [get]}",
            "Role: {apiGroups: [\"\"], resources: [pods/log], verbs: [get]}",
            "ClusterRole: {apiGroups: [\"\"], resources: [namespaces], verbs: [get]}",
            "ClusterRole: {apiGroups: [\"\"], resources: [nodes], verbs: [get]}",
            "ClusterRole: {apiGroups: [\"admissionregistration.k8s.io\"], resources: [mutatingwebhookconfigurations], verbs: [get]}",
        ]
    );
    assert_eq!(report.verdict, Verdict::Healthy, "the probes pass");
}

#[test]
fn control_characters_are_not_printed() {
    let report = report(
        "base: injected\nset: {/pod/found/status/containerStatuses/0/state: {waiting: {reason: CreateContainerError, message: \"a\\u001b[31m\\rb\\u202e\"}}}",
    );
    let text = text::render(&report, NOW);
    assert!(
        text.contains("a\\u{1b}[31m b\\u{202e}")
            && !text.contains(|char: char| char.is_control() && char != '\n'),
        "{text}"
    );
}

/// The limit of the filter concerns the client that sends requests, here the API server.
#[test]
fn rate_limit_of_the_client_is_no_failure() {
    let report =
        report("base: injected\nset: {/answers/0/result/response: {status: 429, body: local_rate_limited}}");
    assert_eq!(report.verdict, Verdict::Healthy);
}

/// The page's roles allow every request.
#[test]
fn the_roles_of_the_page_are_complete() {
    let page = include_str!("../../docs/explain.md");
    let (_, block) = page.split_once("```yaml\n").expect("a block of YAML");
    let (block, _) = block.split_once("```").expect("the end of the block");
    let mut allowed: Vec<(bool, String, String, String)> = Vec::new();
    for role in block.split("---\n").map(yaml) {
        let texts = |value: &Value| -> Vec<String> {
            list(value).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for rule in list(&role["rules"]) {
            for (resource, verb) in texts(&rule["resources"]).into_iter().flat_map(|resource| {
                texts(&rule["verbs"]).into_iter().map(move |verb| (resource.clone(), verb))
            }) {
                allowed.push((role["kind"] == "Role", texts(&rule["apiGroups"]).concat(), resource, verb));
            }
        }
    }
    let mut needed = report(
        "base: injected\nset: {/pod: forbidden, /events: forbidden, /node: forbidden, /webhook: forbidden, /namespaceObject: forbidden, /metrics: forbidden, /sidecarLog: forbidden}",
    )
    .missing_rules;
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Pod) {
        needed.extend(
            report(&format!(
                "workload: {{object: {}/web, value: forbidden, replicaSets: forbidden, events: forbidden}}",
                kind.word()
            ))
            .missing_rules,
        );
    }
    assert!(needed.len() >= 15, "{needed:?}");
    for rule in needed {
        let wanted =
            (rule.namespaced, rule.api_group.to_owned(), rule.resource.to_owned(), rule.verb.to_owned());
        assert!(allowed.contains(&wanted), "{rule}");
    }
    assert!(
        allowed.contains(&(true, String::new(), "pods".to_owned(), "list".to_owned())),
        "the Pods of a workload"
    );
}
