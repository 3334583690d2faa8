//! What to do about a crash, by its exit code and the last words of the application.

use crate::causes::container_config::EXEC_FORMAT;
use crate::container::Terminated;

/// Words in a last line, in lower case, and what to do about them.
const WORDS: [(&str, &str); 7] = [
    ("exec format error", EXEC_FORMAT),
    (
        "read-only file system",
        "readOnlyRootFilesystem is set: mount an emptyDir where the application writes",
    ),
    (
        "address already in use",
        "another process of the Pod listens on the same port: all containers of a Pod share the ports",
    ),
    ("no space left on device", "a volume, or the disk of the node, is full"),
    (
        "permission denied",
        "compare runAsUser, fsGroup and capabilities with the files and ports that the application uses",
    ),
    (
        "operation not permitted",
        "does the application need a capability, or another user? Compare its security context",
    ),
    ("no such file or directory", "compare command, volumeMounts and the image: the file does not exist"),
];

/// Returns more special advice than to read the log, if there is any.
pub(super) fn advice(terminated: Terminated<'_>, message: &str) -> Option<&'static str> {
    let lower = message.to_lowercase();
    let by_words = WORDS.into_iter().find(|(words, _)| lower.contains(words)).map(|(_, advice)| advice);
    by_words.or(match terminated.exit_code() {
        _ if terminated.is_lost() => Some("kubelet did not see its end: look at the node, which may have restarted"),
        126 => Some("correct the command: its file is not executable"),
        127 => Some("correct the command: it is not in the image"),
        137 => Some(
            "it was killed from outside: look at the events for failed probes, and at the memory of the node and of the container's other processes",
        ),
        139 => Some("it accessed invalid memory: look at its log with --previous, and for a library of another version or architecture"),
        143 => Some("it was asked to stop: look at the events for failed probes, and for what sends SIGTERM in the container"),
        _ => None,
    })
}
