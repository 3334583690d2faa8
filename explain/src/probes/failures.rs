//! How often a probe failed, and since when: from the sidecar's metrics and log, and kubelet's events.

use probe::reason::Reason;

use crate::clock::Timestamp;
use crate::container::Container;
use crate::event::Event;
use crate::metrics::samples;
use crate::situation::Situation;
use injector::ProbeKind;

const PROBES: &str = "app_health_probes_total";
/// How old the newest event may be if a probe still fails, in seconds: kubelet sends no more than
/// one event in five minutes about a Pod that has had many.
const CURRENT: u64 = 330;

/// Returns the number of failures that the filter has counted since Envoy started, or that events
/// report; `None` if neither was read.
pub(super) fn count(
    situation: &Situation,
    container: &str,
    kind: ProbeKind,
    events: &[Event],
) -> Option<u64> {
    let counted = situation.metrics.found().and_then(|text| {
        let mut own = samples(text).filter(|sample| {
            sample.name == PROBES
                && sample.label("container") == container
                && sample.label("kind") == kind.word()
        });
        let is_failure =
            |word: &str| !Reason::ALL.iter().any(|reason| reason.is_success() && reason.word() == word);
        let first = own.next()?;
        Some(
            std::iter::once(first)
                .chain(own)
                .filter(|sample| is_failure(sample.label("reason")))
                .map(|sample| sample.value)
                .sum(),
        )
    });
    let recorded = || {
        situation.events.found()?;
        Some(of(container, kind, events).map(|event| event.count).sum())
    };
    counted.or_else(recorded)
}

/// Returns since when the probe fails: from the line of the sidecar's log about its last success, or
/// else from the oldest event that reports the same failure as the newest.
pub(super) fn since(
    situation: &Situation,
    container: &str,
    kind: ProbeKind,
    events: &[Event],
) -> Option<String> {
    let logged = situation.sidecar_log.found().and_then(|log| since_log(log, container, kind));
    let recorded = || {
        let last = last_event(container, kind, events)?;
        let same = of(container, kind, events).filter(|event| event.message == last.message);
        same.map(|event| event.first.clone()).min()
    };
    logged.or_else(recorded)
}

/// Finds the first line after the last success.
fn since_log(log: &str, container: &str, kind: ProbeKind) -> Option<String> {
    let mut since = None;
    for (stamp, reason) in logged(log, container, kind.word()) {
        if reason.is_success() {
            since = None;
        } else if since.is_none() {
            since = Some(stamp.to_owned());
        }
    }
    since
}

/// Returns the newest word that the log has for a probe or a hook.
pub(crate) fn last_word(log: &str, container: &str, label: &str) -> Option<Reason> {
    logged(log, container, label).last().map(|(_, reason)| reason)
}

/// Returns time stamp and reason of each line about a probe or a hook: a time stamp, and Envoy's line
/// with `probe app/readyz: refused, was ok`.
fn logged<'a>(log: &'a str, container: &str, label: &str) -> impl Iterator<Item = (&'a str, Reason)> {
    let words = format!("probe {container}/{label}: ");
    log.lines().filter_map(move |line| {
        let (_, rest) = line.split_once(words.as_str())?;
        let word = rest.split([',', ' ', '"']).next().unwrap_or_default();
        let reason = Reason::ALL.into_iter().find(|known| known.word() == word)?;
        Some((line.split(' ').next().unwrap_or_default(), reason))
    })
}

fn of<'a>(container: &'a str, kind: ProbeKind, events: &'a [Event]) -> impl Iterator<Item = &'a Event> {
    // The first letter of the message is upper-case.
    let begin = format!("{} probe ", kind.name());
    events.iter().filter(move |event| {
        let start = event.message.get(..begin.len()).unwrap_or_default();
        event.reason == "Unhealthy" && event.container == container && start.eq_ignore_ascii_case(&begin)
    })
}

/// Returns the newest event about a failure of this probe.
pub(crate) fn last_event<'a>(container: &'a str, kind: ProbeKind, events: &'a [Event]) -> Option<&'a Event> {
    of(container, kind, events).last()
}

/// Returns the newest event about a failure of this probe that kubelet has counted.
pub(crate) fn last_counted<'a>(
    container: &'a str,
    kind: ProbeKind,
    events: &'a [Event],
) -> Option<&'a Event> {
    of(container, kind, events).filter(|event| !is_error(event)).last()
}

/// Returns true if there are events about this probe, and kubelet could perform it in none of them.
pub(super) fn are_errors(container: &str, kind: ProbeKind, events: &[Event]) -> bool {
    last_event(container, kind, events).is_some() && last_counted(container, kind, events).is_none()
}

/// Returns true if the event is of the current run of the container, and so new that the failure
/// may still last.
pub(crate) fn is_current(situation: &Situation, container: &Container<'_>, event: &Event) -> bool {
    let now = Timestamp::parse(&situation.now);
    let age = |stamp: &str| Some(Timestamp::parse(stamp)?.seconds_until(now?));
    let started = container.status["state"]["running"]["startedAt"].as_str();
    let run = started.and_then(age);
    age(&event.last).is_some_and(|age| age <= CURRENT && run.is_none_or(|run| age <= run))
}

/// Returns true if kubelet could not perform the probe, which says nothing about the application.
pub(crate) fn is_error(event: &Event) -> bool {
    let (begin, _) = event.line().split_once(':').unwrap_or_default();
    begin.contains(" probe errored")
}

/// Returns what follows `Readiness probe failed: `, or `Readiness probe errored: ` (to Kubernetes 1.32),
/// or `Readiness probe errored and resulted in unknown state: `.
pub(crate) fn message_of(event: &Event) -> &str {
    event.line().split_once(':').map_or(event.line(), |(_, rest)| rest.trim_start())
}
