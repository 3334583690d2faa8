//! The explanation of one Pod: verdict, main cause, and everything that supports them.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::causes;
use crate::event::Event;
use crate::finding::{Code, Finding, Severity};
use crate::injection::Injection;
use crate::object::Rule;
use crate::probes::ProbeRow;
use crate::sidecar::Sidecar;
use crate::situation::{Fetched, ProbeResult, Situation};
use crate::view::View;

/// Maximum number of warnings that are shown; these are the newest.
const EVENTS: usize = 5;

enum_table::table! {
    /// The result for a Pod or a workload, and the exit code of the command.
    #[derive(PartialOrd, Ord)]
    pub enum Verdict(
        word: &'static str,
        exit_code: u8,
    ) {
        Healthy("healthy", 0),
        NotInjected("not-injected", 3),
        Unknown("unknown", 4),
        Unhealthy("unhealthy", 1),
    }
}

impl Verdict {
    /// Returns the verdict that follows from findings.
    pub(crate) fn of(findings: &[Finding]) -> Self {
        let has = |severity| findings.iter().any(|finding| finding.severity == severity);
        match () {
            () if has(Severity::Broken) => Self::Unhealthy,
            () if has(Severity::Unknown) => Self::Unknown,
            () if has(Severity::NotInjected) => Self::NotInjected,
            () => Self::Healthy,
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// What is known about one Pod. Its JSON form is documented in docs/explain.md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub verdict: Verdict,
    /// The main cause; absent if the Pod is healthy.
    pub cause: Option<Finding>,
    /// What else was found, the most important first.
    pub findings: Vec<Finding>,
    pub phase: String,
    pub node: Option<String>,
    /// Absent if the Pod could not be read.
    pub injection: Option<Injection>,
    pub sidecar: Option<Sidecar>,
    pub probes: Vec<ProbeRow>,
    /// The newest warnings, the newest last.
    pub events: Vec<Event>,
    /// Rules of RBAC without which something could not be read.
    pub missing_rules: Vec<Rule>,
}

/// Explains one Pod from what was read about it.
pub fn explain(situation: &Situation) -> Explanation {
    let missing_rules = missing_rules(situation);
    let Some(pod) = situation.pod.found() else {
        let finding = unread(situation);
        return Explanation {
            verdict: Verdict::Unknown,
            cause: Some(finding),
            findings: Vec::new(),
            phase: String::new(),
            node: None,
            injection: None,
            sidecar: None,
            probes: Vec::new(),
            events: Vec::new(),
            missing_rules,
        };
    };
    let view = View::new(situation, pod);
    let mut findings = causes::all(&view);
    let verdict = Verdict::of(&findings);
    let decisive = match verdict {
        Verdict::Healthy => None,
        Verdict::NotInjected => Some(Severity::NotInjected),
        Verdict::Unknown => Some(Severity::Unknown),
        Verdict::Unhealthy => Some(Severity::Broken),
    };
    let index = findings.iter().position(|finding| Some(finding.severity) == decisive);
    let cause = index.map(|index| findings.remove(index));
    let warnings = view.events.iter().filter(|event| event.is_warning());
    let skipped = warnings.clone().count().saturating_sub(EVENTS);
    Explanation {
        verdict,
        cause,
        findings,
        phase: view.phase().to_owned(),
        node: pod["spec"]["nodeName"].as_str().map(str::to_owned),
        events: warnings.skip(skipped).cloned().collect(),
        injection: Some(view.injection),
        sidecar: view.sidecar,
        probes: view.probes,
        missing_rules,
    }
}

fn unread(situation: &Situation) -> Finding {
    match &situation.pod {
        Fetched::NotFound => Finding::unknown(
            Code::NotFound,
            "the Pod does not exist",
            "check the name, the namespace and the context",
        ),
        Fetched::Forbidden => Finding::unknown(
            Code::NotReadable,
            "you may not read the Pod",
            "add the rule that is named below to your role",
        ),
        Fetched::Failed(error) => {
            Finding::unknown(Code::NotReadable, format!("the Pod could not be read: {error}"), "try again")
        }
        Fetched::NotRequested | Fetched::Found(_) => {
            Finding::unknown(Code::NotReadable, "the Pod was not read", "try again")
        }
    }
}

/// Returns the rules for each kind of request that was refused.
fn missing_rules(situation: &Situation) -> Vec<Rule> {
    fn is_forbidden<T: PartialEq>(fetched: &Fetched<T>) -> bool {
        *fetched == Fetched::Forbidden
    }
    let proxy = situation.answers.iter().any(|answer| answer.result == ProbeResult::Forbidden)
        || is_forbidden::<Value>(&situation.readiness)
        || is_forbidden(&situation.metrics);
    let logs = is_forbidden(&situation.sidecar_log) || situation.previous_logs.values().any(is_forbidden);
    let rows = [
        (is_forbidden(&situation.pod), Rule::namespaced("", "pods", "get")),
        (is_forbidden(&situation.events), Rule::namespaced("", "events", "list")),
        (proxy, Rule::namespaced("", "pods/proxy", "get")),
        (logs, Rule::namespaced("", "pods/log", "get")),
        (is_forbidden(&situation.namespace_object), Rule::cluster("", "namespaces", "get")),
        (is_forbidden(&situation.node), Rule::cluster("", "nodes", "get")),
        (
            is_forbidden(&situation.webhook),
            Rule::cluster("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get"),
        ),
    ];
    rows.into_iter().filter(|(missing, _)| *missing).map(|(_, rule)| rule).collect()
}
