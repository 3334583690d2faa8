//! Pod and settings in; Pod, table and warnings out.

use serde_json::Value;

use crate::decision::{Decision, decide};
use crate::settings::Settings;
use crate::warning::{Code, Warning};
use crate::wishes::Wishes;
use crate::{STATUS, WARNINGS, pod, rewrite, sidecar};

/// Something that is no Pod: which field, and what it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{reason}", .field, if .field.is_empty() { "" } else { ": " })]
pub struct Refused {
    /// A dotted path inside the Pod; empty for the Pod itself.
    pub field: String,
    /// What it must be.
    pub reason: &'static str,
}

/// What surrounds a Pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings<'a> {
    /// Its namespace, or that of the object which holds it; empty if nobody knows.
    pub namespace: &'a str,
    /// Whether it is the template of a Job.
    pub job: bool,
}

/// What became of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It has a sidecar now.
    Injected,
    /// It had one, and changed.
    Rewritten,
    /// It is as it was.
    Unchanged,
    /// It was none of our business.
    Skipped,
}

impl Outcome {
    /// The word of audit annotation, metric and log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Rewritten => "rewritten",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
        }
    }
}

/// What became of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeResult {
    /// It leads to the proxy now.
    Rewritten,
    /// It did before.
    Done,
    /// It is as it was declared.
    Left,
}

impl ProbeResult {
    /// The word of the metric.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rewritten => "rewritten",
            Self::Done => "done",
            Self::Left => "left",
        }
    }
}

/// A probe or hook that goes over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The container's name, or its place if the name is none.
    pub container: String,
    /// `livez` and so on, the last segment of the path.
    pub word: String,
    /// `httpGet`, `tcpSocket`, `grpc`; empty where that is not clear.
    pub handler: &'static str,
    /// What became of it.
    pub result: ProbeResult,
    /// Why it was left, if it was.
    pub code: Option<Code>,
}

/// A Pod after its injection.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The Pod.
    pub pod: Value,
    /// The value of the variable that holds the table, if there is one.
    pub table: Option<String>,
    /// What could not be done.
    pub warnings: Vec<Warning>,
    /// What became of the Pod.
    pub outcome: Outcome,
    /// What became of each probe.
    pub probes: Vec<Probe>,
}

/// Injects the sidecar where it is absent, and rewrites the probes. Applied twice it is as applied once.
///
/// # Errors
/// Where the value is no Pod: `spec.containers: must be a list`.
pub fn apply(of: &Value, surroundings: Surroundings, settings: &Settings) -> Result<Injection, Refused> {
    pod::check(of)?;
    let wishes = Wishes::read(of, settings);
    let decision = decide(of, surroundings.namespace, &wishes, settings);
    let untouched = |warnings, outcome| {
        Ok(Injection { pod: of.clone(), table: None, warnings, outcome, probes: Vec::new() })
    };
    let mut changed = of.clone();
    let mut warnings = wishes.warnings.clone();
    match decision {
        Decision::Skip(warning) => return untouched(warning.into_iter().collect(), Outcome::Skipped),
        Decision::Unchanged(warning) => {
            warnings.push(warning);
            return untouched(warnings, Outcome::Unchanged);
        }
        Decision::Rewrite => warnings.extend(other_template(of, settings)),
        Decision::Inject => {
            let job = surroundings.job || is_of_job(of);
            warnings.extend(sidecar::inject(&mut changed, &wishes, settings, job));
        }
    }
    let mut rewriting = rewrite::Rewriting::default();
    if wishes.rewrite {
        rewriting = rewrite::rewrite(&mut changed, &settings.sidecar_name, wishes.status_port);
        warnings.append(&mut rewriting.warnings);
    }
    keep(&mut changed, &warnings);
    let outcome = match decision {
        Decision::Inject => Outcome::Injected,
        _ if changed == *of => Outcome::Unchanged,
        _ => Outcome::Rewritten,
    };
    Ok(Injection { pod: changed, table: rewriting.table, warnings, outcome, probes: rewriting.probes })
}

/// Whether a Job made the Pod.
fn is_of_job(of: &Value) -> bool {
    let metadata = pod::field(of, "metadata").unwrap_or(&Value::Null);
    pod::list(metadata, "ownerReferences").iter().any(|owner| pod::text(owner, "kind") == "Job")
}

/// Warns of a sidecar that was injected from another template than today's.
fn other_template(of: &Value, settings: &Settings) -> Option<Warning> {
    let status = pod::annotation(of, STATUS)?.as_str()?;
    let status: Value = serde_json::from_str(status).ok()?;
    let template = status.get("template")?.as_str()?;
    let text = "the sidecar is of another template: inject the original again";
    (template != settings.template.hash).then(|| Warning::of_pod(Code::TemplateChanged, text))
}

/// Keeps the warnings where whoever looks at the Pod finds them: a Pod of a Deployment is created by a controller, which reads none.
fn keep(of: &mut Value, warnings: &[Warning]) {
    if warnings.is_empty() {
        return;
    }
    let there = pod::annotation(of, WARNINGS).and_then(Value::as_str);
    let mut texts: Vec<String> = there.and_then(|texts| serde_json::from_str(texts).ok()).unwrap_or_default();
    let before = texts.len();
    for warning in warnings {
        let text = warning.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() > before {
        pod::annotate(of, WARNINGS, Value::from(texts).to_string());
    }
}
