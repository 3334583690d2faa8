//! A container of a Pod: what was declared, and its state.

use std::ops::Deref;

use injector::template::SIDECAR_NAME;
use injector::{PROBERS_ENV, pod};
use serde_json::Value;

pub(crate) use injector::Role;

/// A port on which no application listens and the sidecar is ready.
pub(crate) const READY_PORT: u64 = 15021;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Container<'a> {
    declared: injector::Container<'a>,
    /// Null if kubelet has not reported it yet.
    pub(crate) status: &'a Value,
}

impl<'a> Deref for Container<'a> {
    type Target = injector::Container<'a>;

    fn deref(&self) -> &Self::Target {
        &self.declared
    }
}

impl<'a> Container<'a> {
    /// Returns all containers, in the order in which they start.
    pub(crate) fn all(pod: &'a Value) -> Vec<Self> {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let statuses = || lists.into_iter().flat_map(|list| pod::list(&pod["status"], list));
        let with_status = |declared: injector::Container<'a>| {
            let status = statuses().find(|status| pod::name(status) == declared.name);
            Self { declared, status: status.unwrap_or(&Value::Null) }
        };
        injector::Container::all(&pod["spec"], is_sidecar).into_iter().map(with_status).collect()
    }

    /// Returns true for the application, and for any other container beside it but the proxy.
    pub(crate) fn is_application(&self) -> bool {
        matches!(self.role, Role::Application | Role::NativeSidecar)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status["state"]["running"].is_object()
    }

    /// Returns the reason and the message of the state `waiting`.
    pub(crate) fn waiting(&self) -> Option<(&'a str, &'a str)> {
        let waiting = &self.status["state"]["waiting"];
        let text = |key| waiting[key].as_str().unwrap_or_default();
        waiting.is_object().then(|| (text("reason"), text("message")))
    }

    /// Returns how the last run ended: the current state if it is not running, else the last state.
    pub(crate) fn terminated(&self) -> Option<Terminated<'a>> {
        let states = [&self.status["state"]["terminated"], &self.status["lastState"]["terminated"]];
        states.into_iter().find(|state| state.is_object()).map(Terminated)
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.status["restartCount"].as_u64().unwrap_or(0)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status["ready"] == true
    }

    pub(crate) fn is_started(&self) -> bool {
        self.status["started"] == true
    }

    /// Returns true if the container does not run now because its last run ended in a failure, or
    /// if kubelet delays its next start.
    pub(crate) fn is_crashing(&self) -> bool {
        let failed = |state: &Value| state["exitCode"].as_i64().is_some_and(|code| code != 0);
        self.waiting().is_some_and(|(reason, _)| reason == "CrashLoopBackOff")
            || failed(&self.status["state"]["terminated"])
    }
}

/// The end of one run of a container, as kubelet reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminated<'a>(&'a Value);

impl<'a> Terminated<'a> {
    pub(crate) fn exit_code(self) -> i64 {
        self.0["exitCode"].as_i64().unwrap_or(0)
    }

    pub(crate) fn is_out_of_memory(self) -> bool {
        self.0["reason"] == "OOMKilled"
    }

    /// Returns true if the runtime could not start the container.
    pub(crate) fn is_start_error(self) -> bool {
        matches!(self.0["reason"].as_str(), Some("StartError" | "ContainerCannotRun"))
    }

    /// Returns true if kubelet did not see how the container ended, for example because the node
    /// restarted; it then invents the exit code 137.
    pub(crate) fn is_lost(self) -> bool {
        self.0["reason"] == "ContainerStatusUnknown"
    }

    /// Returns the lines of the termination message.
    pub(crate) fn lines(self) -> Vec<&'a str> {
        self.0["message"].as_str().unwrap_or_default().trim().lines().collect()
    }

    /// Returns the first line of the termination message; empty if there is none.
    pub(crate) fn message(self) -> &'a str {
        self.0["message"].as_str().unwrap_or_default().trim().lines().next().unwrap_or_default()
    }

    pub(crate) fn started_at(self) -> &'a str {
        self.0["startedAt"].as_str().unwrap_or_default()
    }

    pub(crate) fn finished_at(self) -> &'a str {
        self.0["finishedAt"].as_str().unwrap_or_default()
    }

    /// Returns `exit code 1`, or `exit code 137 (SIGKILL)`.
    pub(crate) fn describe(self) -> String {
        let code = self.exit_code();
        let signal = match code {
            _ if self.is_lost() => " (its real end is not known)",
            132 => " (SIGILL)",
            134 => " (SIGABRT)",
            135 => " (SIGBUS)",
            136 => " (SIGFPE)",
            137 => " (SIGKILL)",
            139 => " (SIGSEGV)",
            143 => " (SIGTERM)",
            126 => " (the command cannot be executed)",
            127 => " (the command was not found)",
            _ => "",
        };
        format!("exit code {code}{signal}")
    }
}

fn is_sidecar(spec: &Value) -> bool {
    let has_table = || list(&spec["env"]).iter().any(|variable| variable["name"] == PROBERS_ENV);
    spec["name"] == SIDECAR_NAME || has_table()
}

/// Returns the elements of a list; none if it is not a list.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
