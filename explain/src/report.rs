//! The answer of the command: one Pod, or the Pods of a workload, the worst first.

use serde::Serialize;
use serde_json::Value;

use crate::explanation::{Explanation, Verdict, explain};
use crate::finding::{Finding, Severity};
use crate::object::{ObjectName, Rule};
use crate::situation::{Fetched, Situation};
use crate::workload::{self, WorkloadSituation};

/// Its JSON form is documented in docs/explain.md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub object: ObjectName,
    pub namespace: String,
    pub verdict: Verdict,
    /// The main cause: of the workload, else of its worst Pods. Absent if it is healthy.
    pub cause: Option<Finding>,
    /// What was found about the workload itself, without the main cause.
    pub findings: Vec<Finding>,
    /// Pods with the same findings form a group.
    pub pods: Vec<PodGroup>,
    /// Number of Pods that were not looked at.
    pub omitted: usize,
    /// Rules of RBAC without which something could not be read.
    pub missing_rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodGroup {
    /// The names of the Pods; the explanation is that of the first.
    pub names: Vec<String>,
    #[serde(flatten)]
    pub explanation: Explanation,
}

impl Report {
    /// Reports on one Pod.
    pub fn of_pod(object: ObjectName, situation: &Situation) -> Self {
        let explanation = explain(situation);
        Self {
            object,
            namespace: situation.namespace.clone(),
            verdict: explanation.verdict,
            cause: explanation.cause.clone(),
            findings: Vec::new(),
            missing_rules: explanation.missing_rules.clone(),
            pods: vec![PodGroup { names: vec![situation.name.clone()], explanation }],
            omitted: 0,
        }
    }

    /// Reports on a workload and its Pods.
    pub fn of_workload(situation: &WorkloadSituation) -> Self {
        let pods = groups(situation.pods.found().map_or(&[], Vec::as_slice));
        let mut findings = workload::findings(situation);
        let own = Verdict::of(&findings);
        let worst = pods.first().map_or(Verdict::Healthy, |group| group.explanation.verdict);
        let index = findings.iter().position(|finding| finding.severity == Severity::Broken);
        let index = index.or_else(|| {
            findings.iter().position(|finding| finding.severity == Severity::Unknown && own >= worst)
        });
        let cause = match index {
            Some(index) => Some(findings.remove(index)),
            None => pods.first().and_then(|group| group.explanation.cause.clone()),
        };
        let mut missing_rules = missing_rules(situation);
        for rule in pods.iter().flat_map(|group| &group.explanation.missing_rules) {
            if !missing_rules.contains(rule) {
                missing_rules.push(rule.clone());
            }
        }
        Self {
            object: situation.object.clone(),
            namespace: situation.namespace.clone(),
            verdict: own.max(worst),
            cause,
            findings,
            pods,
            omitted: situation.omitted,
            missing_rules,
        }
    }

    /// Returns the JSON form without what changes all the time: ages, counts, latencies. Two reports
    /// with the same state tell the same.
    pub fn state(&self) -> Value {
        const VOLATILE: [&str; 6] = ["milliseconds", "failures", "since", "count", "first", "last"];
        let mut value = serde_json::to_value(self).unwrap_or_default();
        strip(&mut value, &VOLATILE);
        value
    }
}

fn strip(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !keys.contains(&key.as_str()));
            fields.values_mut().for_each(|value| strip(value, keys));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|value| strip(value, keys)),
        _ => {}
    }
}

/// Groups Pods with equal findings, the worst first and the largest group of these.
fn groups(situations: &[Situation]) -> Vec<PodGroup> {
    let mut groups: Vec<PodGroup> = Vec::new();
    for situation in situations {
        let explanation = explain(situation);
        let same = groups.iter_mut().find(|group| {
            group.explanation.verdict == explanation.verdict
                && group.explanation.cause == explanation.cause
                && group.explanation.findings == explanation.findings
        });
        match same {
            Some(group) => group.names.push(situation.name.clone()),
            None => groups.push(PodGroup { names: vec![situation.name.clone()], explanation }),
        }
    }
    groups.sort_by(|one, other| {
        let verdicts = other.explanation.verdict.cmp(&one.explanation.verdict);
        verdicts.then(other.names.len().cmp(&one.names.len()))
    });
    groups
}

fn missing_rules(situation: &WorkloadSituation) -> Vec<Rule> {
    let (group, resource) = situation.object.kind.resource();
    let rows = [
        (situation.value == Fetched::Forbidden, Rule::namespaced(group, resource, "get")),
        (situation.replica_sets == Fetched::Forbidden, Rule::namespaced("apps", "replicasets", "list")),
        (matches!(situation.pods, Fetched::Forbidden), Rule::namespaced("", "pods", "list")),
        (situation.events == Fetched::Forbidden, Rule::namespaced("", "events", "list")),
    ];
    rows.into_iter().filter(|(missing, _)| *missing).map(|(_, rule)| rule).collect()
}
