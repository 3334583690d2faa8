//! Kubernetes' own validation of Pods before and after injection: a Pod that was valid stays valid,
//! or stays unchanged with a warning, and its QoS class does not change without a word. The program
//! is in `tests/pod-validation`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::Parser as _;
use injector::flags::SettingsArgs;
use injector::settings::Settings;
use injector::warning::Code;
use injector::{Injection, PodContext, PodOutcome};
use serde_json::{Value, json};

use crate::pod_generator;

/// The number of generated Pods, and how many of them are valid before injection at least.
const PODS: u64 = 3_200;
const VALID_PODS: usize = 2_000;

/// The API server's verdict on a Pod.
struct Verdict {
    errors: Vec<String>,
    qos_class: String,
    /// The Pod's own requests in thousandths; `null` without `spec.resources`.
    requests: Value,
    /// The Pod with the API server's defaults; `null` if it cannot be decoded.
    defaulted: Value,
}

impl Verdict {
    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// Returns the verdicts on all Pods.
fn validate(pods: &[Value]) -> Vec<Verdict> {
    let program = kit::envoy::workspace().join("target/pod-validation/pod-validation");
    let mut child = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}: ./justw it builds it", program.display()));
    let mut stdin = child.stdin.take().expect("piped");
    let lines: String = pods.iter().map(|pod| format!("{pod}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let verdicts: Vec<Verdict> = stdout.lines().map(|line| verdict(&line.expect("a line"))).collect();
    writer.join().expect("no panic").expect("the program reads its input");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(verdicts.len(), pods.len());
    verdicts
}

fn verdict(line: &str) -> Verdict {
    let value: Value = serde_json::from_str(line).expect("JSON");
    let errors = value["errors"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    Verdict {
        errors: errors.map(text).collect(),
        qos_class: text(&value["qosClass"]),
        requests: value["requests"].clone(),
        defaulted: value["pod"].clone(),
    }
}

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    settings: SettingsArgs,
}

fn settings(flags: &str) -> Settings {
    let words = ["app-health"].into_iter().chain(flags.split_whitespace());
    let Flags { settings } = Flags::try_parse_from(words).expect("flags");
    let template = settings.template.as_ref().map(|name| {
        fs::read_to_string(goldens().join("templates").join(name)).expect("a template of the goldens")
    });
    settings.check(template.as_deref()).expect("settings")
}

fn goldens() -> PathBuf {
    kit::envoy::workspace().join("injector/testdata/inject")
}

fn inject(pod: &Value, settings: &Settings) -> Injection {
    injector::apply(pod, PodContext::default(), settings).expect("a Pod")
}

/// Returns the Pod without a container with `image: auto`, which is only a request for a sidecar.
fn without_declared_sidecar(pod: &Value) -> Value {
    let mut pod = pod.clone();
    for list in ["initContainers", "containers"] {
        if let Some(containers) = pod["spec"].get_mut(list).and_then(Value::as_array_mut) {
            containers.retain(|container| container["image"] != "auto");
        }
    }
    pod
}

/// True if the Pod has a sidecar, so that nothing may be left to change.
fn has_sidecar(spec: &Value) -> bool {
    let lists = ["initContainers", "containers"].into_iter();
    let mut containers = lists.filter_map(|list| spec[list].as_array()).flatten();
    containers.any(|container| container["name"] == "app-health-proxy" && container["image"] != "auto")
}

/// Compares verdicts before and after injection. `plain` is the verdict on the Pod without a
/// declared sidecar.
fn check(before: &Value, injection: &Injection, plain: &Verdict, verdict: &Verdict) {
    let context = || format!("{before}\n{}\n{:#?}\n{:#?}", injection.pod, injection.warnings, verdict.errors);
    assert!(verdict.is_valid(), "{}", context());
    let codes: Vec<Code> = injection.warnings.iter().map(|warning| warning.code).collect();
    match injection.outcome {
        PodOutcome::Skipped | PodOutcome::Unchanged => {
            assert_eq!(injection.pod, *before);
            let spec = &before["spec"];
            let opted_out = before["metadata"]["labels"]["sidecar.istio.io/inject"] == "false";
            let expected = spec["hostNetwork"] == true || opted_out || has_sidecar(spec);
            assert!(!codes.is_empty() || expected, "{}", context());
        }
        PodOutcome::Injected => {
            let (old, new) = (plain.qos_class.as_str(), verdict.qos_class.as_str());
            let kept = old == new || (old, new) == ("BestEffort", "Burstable");
            assert_eq!(kept, !codes.contains(&Code::Qos), "{old} {new} {}", context());
            assert_eq!(injection.pod["spec"]["resources"]["limits"], before["spec"]["resources"]["limits"]);
        }
        PodOutcome::Rewritten => {}
    }
}

#[test]
fn pods_of_the_goldens_stay_valid() {
    let mut pairs = Vec::new();
    for entry in fs::read_dir(goldens()).expect("the goldens") {
        let file = entry.expect("an entry").path();
        if !file.extension().is_some_and(|extension| extension == "yaml" || extension == "json") {
            continue;
        }
        let injected = PathBuf::from(format!("{}.injected", file.display()));
        let (before, after) = (pods_in(&file), pods_in(&injected));
        if before.len() == after.len() {
            pairs.extend(before.into_iter().zip(after).map(|(before, after)| (file.clone(), before, after)));
        }
    }
    let before = validate(&pairs.iter().map(|(_, before, _)| before.clone()).collect::<Vec<_>>());
    let after = validate(&pairs.iter().map(|(_, _, after)| after.clone()).collect::<Vec<_>>());
    let mut valid = 0;
    for (((file, _, pod), before), after) in pairs.iter().zip(&before).zip(&after) {
        if before.is_valid() {
            assert!(after.is_valid(), "{}: {:#?}\n{pod}", file.display(), after.errors);
            valid += 1;
        }
    }
    assert!(valid >= 80, "only {valid} of {} Pods were valid before", pairs.len());
}

/// Returns the Pods and Pod templates in a file, as Pods with a name.
fn pods_in(file: &std::path::Path) -> Vec<Value> {
    fn collect(value: &Value, pods: &mut Vec<Value>) {
        if value["spec"]["containers"].is_array() {
            let mut pod = json!({"metadata": value["metadata"], "spec": value["spec"]});
            if pod["metadata"]["name"].is_null() {
                pod["metadata"]["name"] = "golden".into();
            }
            return pods.push(pod);
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|value| collect(value, pods)),
            Value::Array(elements) => elements.iter().for_each(|value| collect(value, pods)),
            _ => {}
        }
    }
    let text = fs::read_to_string(file).expect("a golden");
    let mut pods = Vec::new();
    for document in injector::yaml_documents::read(&text).into_iter().flatten() {
        collect(&document.value, &mut pods);
    }
    pods
}

#[test]
fn generated_pods_stay_valid() {
    let flags = ["", "--sidecar-mode classic", "--sidecar-mode classic --hold=false", "--template full.yaml"];
    let settings: Vec<Settings> = flags.iter().map(|flags| settings(flags)).collect();
    let pods: Vec<Value> = (0..PODS).map(pod_generator::pod).collect();
    let before = validate(&pods);
    let plain = validate(&pods.iter().map(without_declared_sidecar).collect::<Vec<_>>());
    let settings_of = |index: usize| &settings[index % settings.len()];
    let injected: Vec<Injection> =
        pods.iter().enumerate().map(|(index, pod)| inject(pod, settings_of(index))).collect();
    let after = validate(&injected.iter().map(|injection| injection.pod.clone()).collect::<Vec<_>>());
    // A webhook gets the same Pods with the API server's defaults.
    let defaulted: Vec<Value> = before
        .iter()
        .zip(&pods)
        .map(|(verdict, pod)| if verdict.is_valid() { verdict.defaulted.clone() } else { pod.clone() })
        .collect();
    let reviewed: Vec<Injection> =
        defaulted.iter().enumerate().map(|(index, pod)| inject(pod, settings_of(index))).collect();
    let admitted = validate(&reviewed.iter().map(|injection| injection.pod.clone()).collect::<Vec<_>>());
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for index in (0..pods.len()).filter(|index| before[*index].is_valid()) {
        check(&pods[index], &injected[index], &plain[index], &after[index]);
        check(&defaulted[index], &reviewed[index], &plain[index], &admitted[index]);
        assert_eq!(injected[index].outcome, reviewed[index].outcome, "Pod of seed {index}");
        let again = inject(&injected[index].pod, settings_of(index));
        assert_eq!(again.pod, injected[index].pod, "Pod of seed {index}");
        // The API server derives requests of a declared sidecar from its limits before the template
        // can add them.
        if without_declared_sidecar(&pods[index]) == pods[index] {
            assert_eq!(after[index].requests, admitted[index].requests, "Pod of seed {index}");
        }
        let outcome = injected[index].outcome.word();
        let level = if pods[index]["spec"]["resources"].is_null() { "containers" } else { "Pod" };
        let keys =
            [format!("{outcome} {}", plain[index].qos_class), format!("{outcome}, resources of {level}")];
        let codes = injected[index].warnings.iter().map(|warning| warning.code.word().to_owned());
        for key in keys.into_iter().chain(codes) {
            *counts.entry(key).or_default() += 1;
        }
    }
    let valid = before.iter().filter(|verdict| verdict.is_valid()).count();
    assert!(valid >= VALID_PODS, "only {valid} of {PODS} Pods are valid before");
    for (key, least) in [
        ("injected Guaranteed", 200),
        ("injected Burstable", 200),
        ("injected BestEffort", 200),
        ("annotation-size", 10),
        ("pod-resources", 15),
        ("injected, resources of Pod", 200),
        ("port-clash", 50),
        ("qos", 5),
        ("security-context", 5),
        ("template-name", 50),
        ("windows", 100),
    ] {
        let count = counts.get(key).copied().unwrap_or_default();
        assert!(count >= least, "only {count} Pods for {key:?}: {counts:#?}");
    }
}
