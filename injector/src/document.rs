//! Injects all Pods of one Kubernetes object.

use serde_json::Value;

use crate::kinds::Kinds;
use crate::settings::Settings;
use crate::skip::{ManifestPods, SkippedItem};
use crate::warning::Warning;
use crate::workload::PodLocation;
use crate::{Cause, Injection, InvalidPod, PodOutcome, ProbeResult, ProbeSummary, apply};

/// An object after injection.
#[derive(Clone, Debug)]
pub struct InjectedDocument {
    /// The object with its injected Pods.
    pub value: Value,
    pub changed: bool,
    /// The Pods of the object with their results.
    pub pods: Vec<(PodLocation, Summary)>,
    /// The items of a list that are left as they are.
    pub skipped: Vec<SkippedItem>,
}

#[derive(Clone, Debug)]
pub struct Summary {
    pub outcome: PodOutcome,
    pub probes: Vec<ProbeSummary>,
    pub warnings: Vec<Warning>,
    /// Why the Pod is skipped, if no warning says so.
    pub skipped: Option<String>,
    /// `native` or `classic`, if the sidecar was injected.
    pub mode: Option<String>,
}

impl Summary {
    /// Returns a one-line description: `sidecar native; app/livez, app/readyz rewritten`.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if let Some(mode) = &self.mode {
            parts.push(format!("sidecar {mode}"));
        }
        for result in [ProbeResult::Rewritten, ProbeResult::AlreadyRewritten, ProbeResult::NotRewritten] {
            let probes = self.probes.iter().filter(|probe| probe.result == result);
            let names: Vec<String> =
                probes.map(|probe| format!("{}/{}", probe.container, probe.word)).collect();
            let word = match result {
                ProbeResult::Rewritten => "rewritten",
                ProbeResult::AlreadyRewritten => "already rewritten",
                ProbeResult::NotRewritten => "not rewritten",
            };
            if !names.is_empty() {
                parts.push(format!("{} {word}", names.join(", ")));
            }
        }
        if parts.is_empty() { self.outcome.word().to_owned() } else { parts.join("; ") }
    }
}

/// Injects every Pod of an object, or of a list except for its items that are not whole objects.
///
/// # Errors
/// Fails if the document is not a mapping, or if a workload in it is malformed. The error names the
/// field and what it must be.
pub fn inject(document: &Value, kinds: &Kinds, settings: &Settings) -> Result<InjectedDocument, InvalidPod> {
    if !document.is_object() && !document.is_null() {
        return Err(InvalidPod { field: String::new(), reason: "must be a mapping" });
    }
    let mut value = document.clone();
    let mut pods = Vec::new();
    let mut changed = false;
    let found = ManifestPods::of(document, kinds);
    for site in found.pods {
        let site = site.map_err(|malformed| malformed.error)?;
        let injection = apply(site.pod(document), site.context(document), settings)
            .map_err(|refused| InvalidPod { field: site.field(&refused.field), ..refused })?;
        changed |= injection.pod != *site.pod(document);
        let summary = summary(&injection);
        *site.pod_mut(&mut value) = injection.pod;
        pods.push((site, summary));
    }
    Ok(InjectedDocument { value, changed, pods, skipped: found.skipped })
}

fn summary(injection: &Injection) -> Summary {
    let injected = injection.outcome == PodOutcome::Injected;
    let status = || {
        let status = injection.pod["metadata"]["annotations"][super::STATUS_ANNOTATION].as_str()?;
        let status: Value = serde_json::from_str(status).ok()?;
        Some(status["mode"].as_str()?.to_owned())
    };
    Summary {
        outcome: injection.outcome,
        probes: injection.probes.clone(),
        warnings: injection.warnings.clone(),
        skipped: match &injection.cause {
            Some(Cause::Skipped(reason)) if injection.warnings.is_empty() => Some(reason.to_string()),
            Some(Cause::Skipped(_) | Cause::Refused(_)) | None => None,
        },
        mode: if injected { status() } else { None },
    }
}
