//! Injects one Pod: decides, adds the sidecar, rewrites the probes and records the warnings.

use serde_json::Value;

use crate::decision::{Decision, ISTIO_PROXY, SkipReason, decide};
use crate::pod::InvalidPod;
use crate::pod_context::PodContext;
use crate::pod_overrides::PodOverrides;
use crate::rewrite::ProbeSummary;
use crate::settings::Settings;
use crate::warning::{Code, Warning};
use crate::{STATUS_ANNOTATION, WARNINGS_ANNOTATION, constraints, pod, rewrite, sidecar};

enum_table::table! {
    #[derive(PartialOrd, Ord, Hash)]
    pub enum PodOutcome(
        /// Returns the word in the audit annotation, the metric and the log.
        word: &'static str,
    ) {
        Injected("injected"),
        /// The Pod had a sidecar and was changed.
        Rewritten("rewritten"),
        Unchanged("unchanged"),
        /// The Pod is not subject to injection.
        Skipped("skipped"),
    }
}

/// A Pod after injection.
#[derive(Clone, Debug)]
pub struct Injection {
    pub pod: Value,
    /// The value of the environment variable with the declared probes, if it is set.
    pub table: Option<String>,
    pub warnings: Vec<Warning>,
    pub outcome: PodOutcome,
    /// Why the Pod is as it was, unless it needs no change.
    pub cause: Option<Cause>,
    pub probes: Vec<ProbeSummary>,
}

/// Why a Pod was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is not subject to injection.
    Skipped(SkipReason),
    /// It cannot be injected. The warning is also among those of the injection.
    Refused(Warning),
}

/// Adds the sidecar if it is absent, and rewrites the probes. The operation is idempotent.
///
/// # Errors
/// Fails if the value is not a valid Pod, for example with `spec.containers: must be a list`.
pub fn apply(pod: &Value, context: PodContext, settings: &Settings) -> Result<Injection, InvalidPod> {
    pod::check(pod)?;
    let overrides = PodOverrides::read(pod, settings);
    let decision = decide(pod, &context, &overrides, settings);
    let untouched = |warnings, cause| {
        let outcome = match &cause {
            Cause::Skipped(_) => PodOutcome::Skipped,
            Cause::Refused(_) => PodOutcome::Unchanged,
        };
        let (pod, cause) = (pod.clone(), Some(cause));
        Ok(Injection { pod, table: None, warnings, outcome, cause, probes: Vec::new() })
    };
    let mut changed = pod.clone();
    let mut warnings = overrides.warnings.clone();
    let result = match decision {
        Decision::Skip(reason, warning) => {
            return untouched(warning.into_iter().collect(), Cause::Skipped(reason));
        }
        Decision::Unchanged(ref warning) => Err(warning.clone()),
        Decision::Rewrite => Ok(other_template(pod, settings).into_iter().collect()),
        Decision::RaiseTimeouts => {
            let rewriting = rewrite::raise_timeouts(&mut changed, ISTIO_PROXY);
            let outcome = if changed == *pod { PodOutcome::Unchanged } else { PodOutcome::Rewritten };
            let rewrite::RewriteResult { table, probes, warnings } = rewriting;
            return Ok(Injection { pod: changed, table, warnings, outcome, cause: None, probes });
        }
        Decision::Inject => {
            let job = context.job || is_owned_by_job(pod);
            inject(pod, &mut changed, &overrides, settings, job)
        }
    };
    match result {
        Ok(new) => warnings.extend(new),
        Err(reason) => {
            warnings.push(reason.clone());
            return untouched(warnings, Cause::Refused(reason));
        }
    }
    let mut rewriting = rewrite::RewriteResult::default();
    if overrides.rewrite {
        rewriting = rewrite::rewrite(&mut changed, &settings.sidecar_name, overrides.status_port);
        warnings.append(&mut rewriting.warnings);
    }
    record_warnings(&mut changed, &warnings);
    if let Err(reason) = constraints::check_annotations(pod, &changed) {
        warnings.push(reason.clone());
        return untouched(warnings, Cause::Refused(reason));
    }
    let outcome = match decision {
        Decision::Inject => PodOutcome::Injected,
        _ if changed == *pod => PodOutcome::Unchanged,
        _ => PodOutcome::Rewritten,
    };
    let rewrite::RewriteResult { table, probes, .. } = rewriting;
    Ok(Injection { pod: changed, table, warnings, outcome, cause: None, probes })
}

/// Adds the sidecar. Returns the reason if the Pod cannot have it.
fn inject(
    pod: &Value,
    changed: &mut Value,
    overrides: &PodOverrides,
    settings: &Settings,
    job: bool,
) -> Result<Vec<Warning>, Warning> {
    let mut warnings = sidecar::inject(changed, overrides, settings, job);
    warnings.extend(constraints::satisfy(pod, changed, settings)?);
    Ok(warnings)
}

fn is_owned_by_job(pod: &Value) -> bool {
    let metadata = pod::field(pod, "metadata").unwrap_or(&Value::Null);
    pod::list(metadata, "ownerReferences").iter().any(|owner| pod::text(owner, "kind") == "Job")
}

/// Warns if the sidecar was injected from another template than the current one.
fn other_template(pod: &Value, settings: &Settings) -> Option<Warning> {
    let status = pod::annotation(pod, STATUS_ANNOTATION)?.as_str()?;
    let status: Value = serde_json::from_str(status).ok()?;
    let template = status.get("template")?.as_str()?;
    let text = "the sidecar was injected from another template: inject the original manifest again";
    let warning = Warning::about_pod(Code::TemplateChanged, text);
    (template != settings.template.hash).then(|| warning.at(pod::annotation_path(STATUS_ANNOTATION)))
}

/// Adds the warnings to an annotation. A Pod of a Deployment is created by a controller, which does
/// not show the warnings of an admission response to users.
fn record_warnings(pod: &mut Value, warnings: &[Warning]) {
    if warnings.is_empty() {
        return;
    }
    let there = pod::annotation(pod, WARNINGS_ANNOTATION).and_then(Value::as_str);
    let mut texts: Vec<String> = there.and_then(|texts| serde_json::from_str(texts).ok()).unwrap_or_default();
    let before = texts.len();
    for warning in warnings {
        let text = warning.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    if texts.len() > before {
        pod::annotate(pod, WARNINGS_ANNOTATION, Value::from(texts).to_string());
    }
}
