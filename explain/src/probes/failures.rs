//! How often a probe failed, and since when: from the sidecar's metrics and log, and kubelet's events.

use probe::reason::Reason;

use crate::event::Event;
use crate::metrics::samples;
use crate::requests::ProbeKind;
use crate::situation::Situation;

const PROBES: &str = "app_health_probes_total";

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
                && sample.label("kind") == kind.label()
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

/// Finds the first line after the last success. A line is a time stamp, and Envoy's line with
/// `probe app/readyz: refused, was ok`.
fn since_log(log: &str, container: &str, kind: ProbeKind) -> Option<String> {
    let words = format!("probe {container}/{}: ", kind.label());
    let mut since = None;
    for line in log.lines() {
        let Some((_, rest)) = line.split_once(words.as_str()) else { continue };
        let reason = rest.split([',', ' ']).next().unwrap_or_default();
        let stamp = line.split(' ').next().unwrap_or_default();
        if Reason::ALL.iter().any(|known| known.is_success() && known.word() == reason) {
            since = None;
        } else if since.is_none() {
            since = Some(stamp.to_owned());
        }
    }
    since
}

fn of<'a>(container: &'a str, kind: ProbeKind, events: &'a [Event]) -> impl Iterator<Item = &'a Event> {
    let begin = format!("{} probe ", kind.event_word());
    events.iter().filter(move |event| {
        event.reason == "Unhealthy" && event.container == container && event.message.starts_with(&begin)
    })
}

/// Returns the newest event about a failure of this probe.
pub(crate) fn last_event<'a>(container: &'a str, kind: ProbeKind, events: &'a [Event]) -> Option<&'a Event> {
    of(container, kind, events).last()
}

/// Returns the status in `Readiness probe failed: HTTP probe failed with statuscode: 502`.
pub(crate) fn status_of(event: &Event) -> Option<u16> {
    event.message.split_once("statuscode: ")?.1.trim().parse().ok()
}

/// Returns what follows `Readiness probe failed: `.
pub(crate) fn message_of(event: &Event) -> &str {
    event.line().split_once(": ").map_or(event.line(), |(_, rest)| rest)
}

/// Returns what to do about a failure that kubelet itself reports.
pub(crate) fn advice_of(event: &Event) -> &'static str {
    let message = event.message.as_str();
    let has = |text: &str| message.contains(text);
    match () {
        () if has(":15020") && has("connection refused") => {
            "Envoy has exited, or the Pod is terminating: read the log of the sidecar, with --previous"
        }
        () if has(":15020") => "Envoy does not answer in time: give the sidecar more CPU",
        () if has("connection refused") => {
            "check the port, and whether the application listens on the Pod's address"
        }
        () if has("context deadline exceeded") || has("timed out") || has("i/o timeout") => {
            "raise timeoutSeconds, or find out what the application waits for"
        }
        () if has("statuscode") => "look at the application's log",
        () => "the message is that of the probe itself: look at the command, or at the application's log",
    }
}
