//! The report as text for a terminal.

mod table;

use crate::clock::{Timestamp, age};
use crate::destination::Destination;
use crate::explanation::{Explanation, Verdict};
use crate::finding::{Finding, Severity};
use crate::probes::{ProbeRow, State};
use crate::report::{PodGroup, Report};
use crate::sidecar::Sidecar;
use table::table;

/// Maximum number of names of a group that are shown.
const NAMES: usize = 3;

/// Renders a report; `now` is the time of the requests, RFC 3339.
pub fn render(report: &Report, now: &str) -> String {
    let now = Timestamp::parse(now);
    let mut text = String::new();
    line(&mut text, &format!("{} in {}: {}", report.object, report.namespace, report.verdict.word()));
    if let Some(cause) = &report.cause {
        line(&mut text, "");
        finding(&mut text, "CAUSE  ", cause);
    }
    if !report.findings.is_empty() {
        line(&mut text, "");
        for each in &report.findings {
            finding(&mut text, "ALSO   ", each);
        }
    }
    let is_workload = report.object.kind != crate::object::Kind::Pod;
    for group in &report.pods {
        if is_workload {
            line(&mut text, "");
            line(&mut text, &format!("{}: {}", names(group), group.explanation.verdict.word()));
        }
        // The cause of the first group is often that of the workload.
        let own = group
            .explanation
            .cause
            .as_ref()
            .filter(|cause| is_workload && report.cause.as_ref() != Some(*cause));
        if let Some(cause) = own {
            finding(&mut text, "CAUSE  ", cause);
        }
        // Of a healthy Pod in a workload only the notes matter.
        let explanation = &group.explanation;
        if !is_workload || explanation.verdict != Verdict::Healthy || !explanation.findings.is_empty() {
            pod(&mut text, explanation, now);
        }
    }
    if report.omitted > 0 {
        line(&mut text, "");
        line(&mut text, &format!("{} more Pods were not looked at.", report.omitted));
    }
    if !report.missing_rules.is_empty() {
        line(&mut text, "");
        line(&mut text, "Your role lacks these rules, so this is not complete:");
        for rule in &report.missing_rules {
            line(&mut text, &format!("  {rule}"));
        }
    }
    text
}

/// Appends one line.
fn line(text: &mut String, line: &str) {
    text.push_str(&one_line(line.trim_end()));
    text.push('\n');
}

/// Messages of applications and registries may contain anything. Those with several lines become one.
fn one_line(text: &str) -> String {
    printable::line(&text.replace(['\n', '\r', '\t'], " ")).into_owned()
}

fn names(group: &PodGroup) -> String {
    let shown: Vec<String> = group.names.iter().take(NAMES).map(|name| format!("pod/{name}")).collect();
    match group.names.len().saturating_sub(NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn finding(text: &mut String, mark: &str, finding: &Finding) {
    let container =
        if finding.container.is_empty() { String::new() } else { format!("{}: ", finding.container) };
    line(text, &format!("{mark}{container}{} ({})", finding.text, finding.code.word()));
    if !finding.advice.is_empty() {
        let end = if finding.advice.ends_with(['.', '?']) { "" } else { "." };
        let is_hint = finding.severity == Severity::Broken && !finding.certain;
        let label = if is_hint { "What to check" } else { "What to do" };
        line(text, &format!("       {label}: {}{end}", finding.advice));
    }
}

fn pod(text: &mut String, explanation: &Explanation, now: Option<Timestamp>) {
    if !explanation.probes.is_empty() {
        line(text, "");
        text.push_str(&table(explanation.probes.iter().map(|row| probe(row, now)).collect()));
    }
    line(text, "");
    if let Some(injection) = &explanation.injection {
        let word = if injection.injected { "yes" } else { "no" };
        line(text, &format!("Injected:  {word}; {}", injection.text));
    }
    if let Some(sidecar) = &explanation.sidecar {
        line(text, &format!("Sidecar:   {}", describe(sidecar)));
    }
    let node = explanation.node.as_deref().map(|node| format!(" on node {node}")).unwrap_or_default();
    if !explanation.phase.is_empty() {
        line(text, &format!("Pod:       {}{node}", explanation.phase));
    }
    if !explanation.findings.is_empty() {
        line(text, "");
        let marks =
            |finding: &Finding| if finding.severity == Severity::Note { "NOTE   " } else { "ALSO   " };
        for each in &explanation.findings {
            finding(text, marks(each), each);
        }
    }
    if !explanation.events.is_empty() {
        line(text, "");
        line(text, "Warnings of Kubernetes, the newest last:");
        for event in &explanation.events {
            let count = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
            let container =
                if event.container.is_empty() { String::new() } else { format!(" {}:", event.container) };
            line(
                text,
                &format!(
                    "  {} ago{count} {}:{container} {}",
                    since(&event.last, now),
                    event.reason,
                    event.line()
                ),
            );
        }
    }
}

fn since(stamp: &str, now: Option<Timestamp>) -> String {
    let seconds = Timestamp::parse(stamp).zip(now).map(|(stamp, now)| stamp.seconds_until(now));
    seconds.map_or_else(|| "some time".to_owned(), age)
}

fn probe(row: &ProbeRow, now: Option<Timestamp>) -> [String; 8] {
    let to = match row.destination {
        Destination::Sidecar => format!("sidecar {}", row.sent_to),
        Destination::Application => format!("application {}", row.sent_to),
        Destination::OtherHost => format!("host {}", row.sent_to),
        Destination::Command | Destination::Unknown => row.sent_to.clone(),
    };
    let state = match row.state {
        State::Passing => "passes",
        State::Failing => "fails",
        State::Waiting => "not sent",
        State::Unknown => "unknown",
    };
    let answer = match (row.status, row.reason) {
        (Some(status), Some(word)) => format!("{state}: {status} {word}"),
        (Some(status), None) => format!("{state}: {status}"),
        (None, _) if row.text.is_empty() => state.to_owned(),
        (None, _) => format!("{state}: {}", row.text),
    };
    let timeout = row.timeout_milliseconds;
    [
        row.container.clone(),
        row.probe.name().to_owned(),
        row.declared.clone(),
        to,
        answer,
        row.since.as_deref().map_or_else(|| "-".to_owned(), |stamp| since(stamp, now)),
        row.failures.map_or_else(|| "-".to_owned(), |failures| failures.to_string()),
        row.milliseconds.map_or_else(|| "-".to_owned(), |taken| format!("{taken} of {timeout} ms")),
    ]
}

fn describe(sidecar: &Sidecar) -> String {
    let state = match (&sidecar.phase, sidecar.ready) {
        (Some(phase), _) => phase.clone(),
        (None, true) => "ready".to_owned(),
        (None, false) => "not ready".to_owned(),
    };
    let envoy = sidecar.envoy.as_deref().map(|version| format!(", Envoy {version}")).unwrap_or_default();
    let exits: u64 = sidecar.envoy_exits.values().sum();
    let last = sidecar.last_exit.as_deref().map(|exit| format!(", last {exit}")).unwrap_or_default();
    format!(
        "{state}{envoy}, {} restarts of the container{last}, {exits} exits of Envoy in it",
        sidecar.restarts
    )
}
