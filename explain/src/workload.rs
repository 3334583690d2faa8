//! The troubles of a workload itself: its controller cannot create Pods, or should not.

use serde_json::Value;

use crate::clock::Timestamp;
use crate::container::list;
use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::object::{Kind, ObjectName};
use crate::situation::{Fetched, Situation};
use crate::wording::{self, admission};

/// After how long a controller that cannot create a Pod tries again at the latest, in seconds:
/// 1000 s, as client-go's util/workqueue limits it, and the time of the call.
const RETRY: u64 = 1100;

/// All results of the requests about a workload.
#[derive(Clone, Debug)]
pub struct WorkloadSituation {
    pub object: ObjectName,
    pub namespace: String,
    pub value: Fetched<Value>,
    /// The ReplicaSets of a Deployment.
    pub replica_sets: Fetched<Vec<Value>>,
    /// Its Pods; `Found` has those that were read, which may be only the first.
    pub pods: Fetched<Vec<Situation>>,
    /// Number of its Pods that were not read.
    pub omitted: usize,
    /// The events of the workload and of its ReplicaSets.
    pub events: Fetched<Vec<Value>>,
}

pub(crate) fn findings(situation: &WorkloadSituation) -> Vec<Finding> {
    let workload = match &situation.value {
        Fetched::Found(workload) => workload,
        Fetched::NotFound => {
            return vec![Finding::unknown(
                Code::NotFound,
                format!("{} does not exist", situation.object),
                "check the name, the namespace and the context",
            )];
        }
        Fetched::Failed(error) => {
            return vec![Finding::unknown(
                Code::NotReadable,
                format!("{} could not be read: {error}", situation.object),
                "try again",
            )];
        }
        Fetched::Forbidden | Fetched::NotRequested => {
            return vec![Finding::unknown(
                Code::NotReadable,
                format!("you may not read {}", situation.object),
                "add the rule that is named below to your role",
            )];
        }
    };
    let mut findings = Vec::new();
    findings.extend(refused(situation, workload));
    findings.extend(failed_job(workload));
    findings.extend(not_wanted(situation, workload));
    if findings.is_empty() {
        findings.extend(unread(situation).or_else(|| missing(situation, workload)));
    }
    findings.extend(rollout(situation, workload));
    findings
}

fn condition<'a>(workload: &'a Value, kind: &str) -> Option<&'a Value> {
    list(&workload["status"]["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// Returns how many Pods the workload wants; `None` for a DaemonSet that has not been counted and
/// for a Job, which runs as many as remain.
fn wanted(kind: Kind, workload: &Value) -> Option<u64> {
    match kind {
        Kind::DaemonSet => workload["status"]["desiredNumberScheduled"].as_u64(),
        Kind::Job => None,
        _ => Some(workload["spec"]["replicas"].as_u64().unwrap_or(1)),
    }
}

/// The API server or a webhook refuses the Pods.
fn refused(situation: &WorkloadSituation, workload: &Value) -> Option<Finding> {
    let events = Event::all(situation.events.found().map_or(&[], Vec::as_slice));
    let last = events
        .iter()
        .rev()
        .find(|event| matches!(event.reason.as_str(), "FailedCreate" | "SuccessfulCreate"));
    let recorded = last
        .filter(|event| event.reason == "FailedCreate" && !is_over(situation, workload, event))
        .map(Event::whole);
    let replica_sets = situation.replica_sets.found().map_or(&[][..], Vec::as_slice).iter();
    let mut failures =
        replica_sets.chain([workload]).filter_map(|object| condition(object, "ReplicaFailure"));
    let reported =
        || Some(failures.find(|condition| condition["status"] == "True")?["message"].as_str()?.to_owned());
    let message = recorded.or_else(reported)?;
    let reason = admission::reason(&message);
    let known = admission::TABLE.iter().find(|(_, wording)| wording::matches(wording.pattern, reason));
    let (code, advice) = known.map_or(
        (Code::Refused, "the message is that of the API server, and is not known here"),
        |(code, wording)| (*code, wording.advice),
    );
    Some(
        Finding::broken(code, format!("its Pods cannot be created: {reason}"), advice)
            .certain_if(known.is_some_and(|(_, wording)| wording.certain)),
    )
}

/// Returns true if all Pods exist, and the controller has not tried to create another one for so long
/// that it wants none: it does not always record that it was successful in the end.
fn is_over(situation: &WorkloadSituation, workload: &Value, refusal: &Event) -> bool {
    let pods = situation.pods.found().map_or(&[][..], Vec::as_slice);
    let found = pods.len() + situation.omitted;
    let is_complete = wanted(situation.object.kind, workload)
        .is_some_and(|wanted| u64::try_from(found).unwrap_or(u64::MAX) >= wanted);
    let age = || {
        let now = Timestamp::parse(&pods.first()?.now)?;
        Some(Timestamp::parse(&refusal.last)?.seconds_until(now))
    };
    is_complete && age().is_some_and(|age| age > RETRY)
}

fn failed_job(workload: &Value) -> Option<Finding> {
    let failed = condition(workload, "Failed").filter(|condition| condition["status"] == "True")?;
    let text = |key: &str| failed[key].as_str().unwrap_or_default();
    let text = format!("the Job has failed: {}: {}", text("reason"), text("message"));
    let advice = match failed["reason"].as_str() {
        Some("DeadlineExceeded") => "raise activeDeadlineSeconds, or find out why the work takes longer",
        _ => "look at the log of its Pods, and create the Job again",
    };
    Some(Finding::broken(Code::Failed, text, advice))
}

fn not_wanted(situation: &WorkloadSituation, workload: &Value) -> Option<Finding> {
    if workload["spec"]["suspend"] == true {
        return Some(Finding::broken(Code::NoReplicas, "the Job is suspended", "set spec.suspend to false"));
    }
    let text = match (situation.object.kind, wanted(situation.object.kind, workload)?) {
        (Kind::DaemonSet, 0) => {
            return Some(Finding::broken(
                Code::NoReplicas,
                "no node matches the DaemonSet",
                "compare nodeSelector, affinity and tolerations with the nodes",
            ));
        }
        (_, 0) => "it is scaled to 0 replicas",
        _ => return None,
    };
    let owner =
        list(&workload["metadata"]["ownerReferences"]).iter().find(|owner| owner["controller"] == true);
    let advice = match owner {
        Some(owner) => {
            let word = |key: &str| owner[key].as_str().unwrap_or_default();
            format!(
                "it belongs to {} {}, which decides on its replicas; of a Deployment, it may be an old revision",
                word("kind"),
                word("name")
            )
        }
        None => format!("kubectl scale {} --replicas=1", situation.object),
    };
    Some(Finding::broken(Code::NoReplicas, text, advice))
}

/// Without its Pods nothing is known about a workload.
fn unread(situation: &WorkloadSituation) -> Option<Finding> {
    let (text, advice) = match &situation.pods {
        Fetched::Found(_) => return None,
        Fetched::Failed(error) => (format!("its Pods could not be read: {error}"), "try again"),
        _ => ("you may not list its Pods".to_owned(), "add the rule that is named below to your role"),
    };
    Some(Finding::unknown(Code::NotReadable, text, advice))
}

fn missing(situation: &WorkloadSituation, workload: &Value) -> Option<Finding> {
    let wanted = wanted(situation.object.kind, workload)?;
    let found = situation.pods.found()?.len() + situation.omitted;
    let text = format!("it has {found} of {wanted} Pods");
    (u64::try_from(found).unwrap_or(u64::MAX) < wanted).then(|| {
        Finding::unknown(
            Code::NoPods,
            text,
            "its controller creates them one after the other; does kube-controller-manager run?",
        )
    })
}

fn rollout(situation: &WorkloadSituation, workload: &Value) -> Option<Finding> {
    if workload["spec"]["paused"] == true && situation.object.kind == Kind::Deployment {
        return Some(Finding::note(
            Code::Rollout,
            "the rollout is paused",
            format!("kubectl rollout resume {}", situation.object),
        ));
    }
    condition(workload, "Progressing")
        .filter(|condition| condition["reason"] == "ProgressDeadlineExceeded")?;
    Some(Finding::note(
        Code::Rollout,
        "the rollout does not progress",
        format!(
            "the Pods of the new template do not become ready; kubectl rollout undo {} restores the old one",
            situation.object
        ),
    ))
}
