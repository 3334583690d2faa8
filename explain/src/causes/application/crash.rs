//! What to do about a crash, by its exit code and the last line of the application.

use crate::container::{Container, Terminated};
use crate::view::View;
use crate::wording;

/// Returns the advice to read the log. Only a container that was restarted has a previous one.
pub(in crate::causes) fn log_advice(container: &Container<'_>) -> &'static str {
    if container.restarts() > 0 { "look at its log with --previous" } else { "look at its log" }
}

/// Returns the last line of the container's log or termination message whose words are known, else the
/// last line: below an error stands often where it happened.
pub(in crate::causes) fn telling_line(view: &View<'_>, container: &Container<'_>) -> Option<String> {
    let message = container.terminated().map(Terminated::lines).unwrap_or_default();
    let log = view.last_lines(container.name);
    let mut newest_first = message.iter().rev().copied().chain(log.iter().rev().map(String::as_str));
    let is_known = |line: &&str| wording::find(wording::output::TABLE, &line.to_lowercase()).is_some();
    newest_first.find(is_known).map(str::to_owned).or_else(|| log.last().cloned())
}

/// Returns more special advice than to read the log, if there is any; true if it is more than a hint.
pub(in crate::causes) fn advice(terminated: Terminated<'_>, message: &str) -> Option<(&'static str, bool)> {
    let known = wording::find(wording::output::TABLE, &message.to_lowercase());
    let by_code = match terminated.exit_code() {
        _ if terminated.is_lost() => {
            Some(("kubelet did not see its end: look at the node, which may have restarted", true))
        }
        126 => Some(("correct the command: its file is not executable", false)),
        127 => Some(("correct the command: it is not in the image", false)),
        137 => Some((
            "it was killed from outside: look at the events for failed probes, and at the memory of the node and of the container's other processes",
            false,
        )),
        139 => Some((
            "it accessed invalid memory: look at its log with --previous, and for a library of another version or architecture",
            true,
        )),
        143 => Some((
            "it was asked to stop: look at the events for failed probes, and for what sends SIGTERM in the container",
            false,
        )),
        _ => None,
    };
    known.map(|known| (known.advice, false)).or(by_code)
}
