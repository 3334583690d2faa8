//! What to do about a crash, by its exit code and by what the application has written last.

use crate::container::{Container, Terminated};
use crate::view::View;
use crate::wording;

/// The exit code of Windows 0xC0000135, in the 32 bits with a sign in which kubelet reports it.
const DLL_NOT_FOUND: i64 = -1_073_741_515;

/// Returns the advice to read the log. Only a container that was restarted has a previous one.
pub(in crate::causes) fn log_advice(container: &Container<'_>) -> &'static str {
    if container.restarts() > 0 { "look at its log with --previous" } else { "look at its log" }
}

/// Where an application has written a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    TerminationMessage,
    LastOfLog,
    Log,
}

/// A line that an application has written.
#[derive(Clone, Debug)]
pub(in crate::causes) struct OutputLine {
    pub(in crate::causes) text: String,
    place: Place,
}

impl OutputLine {
    pub(in crate::causes) fn is_of_message(&self) -> bool {
        self.place == Place::TerminationMessage
    }

    /// Returns the end of a sentence about the container: `; its last line: out of disk`.
    pub(in crate::causes) fn clause(&self) -> String {
        let begin = match self.place {
            Place::TerminationMessage => ":",
            Place::LastOfLog => "; its last line:",
            Place::Log => "; a line of its log:",
        };
        format!("{begin} {}", self.text)
    }
}

/// Returns the newest line of the container's termination message or log that is a known error,
/// else the last line of the log. A known error need not be the last line: a stack trace often
/// follows it.
pub(in crate::causes) fn error_line(view: &View<'_>, container: &Container<'_>) -> Option<OutputLine> {
    let message = container.terminated().map(Terminated::lines).unwrap_or_default();
    let log = view.last_lines(container.name);
    let is_known = |line: &str| wording::find(wording::output::TABLE, &line.to_lowercase()).is_some();
    if let Some(line) = message.iter().rev().find(|line| is_known(line)) {
        return Some(OutputLine { text: (*line).to_owned(), place: Place::TerminationMessage });
    }
    let last = log.len().checked_sub(1)?;
    let index = log.iter().rposition(|line| is_known(line)).unwrap_or(last);
    let text = log[index].clone();
    let place = match () {
        () if message.contains(&text.as_str()) => Place::TerminationMessage,
        () if index == last => Place::LastOfLog,
        () => Place::Log,
    };
    Some(OutputLine { text, place })
}

/// Returns more specific advice than to read the log, if there is any; true if it is more than a
/// hint.
pub(in crate::causes) fn advice(
    terminated: Terminated<'_>,
    line: Option<&OutputLine>,
) -> Option<(&'static str, bool)> {
    let known = line.and_then(|line| wording::find(wording::output::TABLE, &line.text.to_lowercase()));
    let by_code = match terminated.exit_code() {
        _ if terminated.is_lost() => {
            Some(("kubelet did not see its end: look at the node, which may have restarted", true))
        }
        126 => Some(("correct the command: its file is not executable", false)),
        127 => Some(("correct the command: it is not in the image", false)),
        132 => Some((
            "it used an instruction that the CPU of the node does not have, or aborted: use an image for this CPU, or other nodes",
            false,
        )),
        DLL_NOT_FOUND => Some((
            "a DLL that the program needs is not in the image (0xC0000135): use another base image, or add the library",
            true,
        )),
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
