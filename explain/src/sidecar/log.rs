//! What the log of the agent says about the sidecar. Its lines are text or JSON.

use serde_json::Value;

use super::PendingCondition;

/// Returns the conditions that the log says are pending and has not reported as met since, the
/// oldest first.
pub(super) fn pending(log: &str) -> Vec<PendingCondition> {
    let mut pending: Vec<PendingCondition> = Vec::new();
    for line in log.lines() {
        if line.contains("envoy became ready") {
            pending.clear();
        }
        let is_pending = line.contains("readiness condition pending");
        if !is_pending && !line.contains("readiness condition met") {
            continue;
        }
        let Some(condition) = field(line, "condition") else { continue };
        pending.retain(|each| each.condition != condition);
        if is_pending {
            let reason = field(line, "reason").unwrap_or_default();
            pending.push(PendingCondition { condition, reason });
        }
    }
    pending
}

/// Returns true if the log says that Envoy became ready, and of no condition that is pending since.
pub(super) fn is_ready(log: &str) -> bool {
    log.contains("envoy became ready") && pending(log).is_empty()
}

/// Finds the agent's last line `envoy exited unexpectedly status=terminated by SIGKILL seconds=24.4`.
pub(super) fn last_envoy_exit(log: &str) -> Option<String> {
    let mut lines = log.lines().rev().filter(|line| line.contains("envoy exited unexpectedly"));
    lines.find_map(|line| {
        let text = || Some(line.split_once("status=")?.1.split_once(" seconds=")?.0.to_owned());
        json_field(line, "status").or_else(text)
    })
}

/// Returns a field of a line: `condition="listeners"`, or a member of the object `fields`.
fn field(line: &str, name: &str) -> Option<String> {
    let begin = format!(" {name}=\"");
    let text = || Some(line.split_once(&begin)?.1.split_once('"')?.0.to_owned());
    json_field(line, name).or_else(text)
}

/// The line of a JSON log may stand behind a time stamp of kubelet.
fn json_field(line: &str, name: &str) -> Option<String> {
    let object: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
    let value = [&object["fields"][name], &object[name]].into_iter().find_map(Value::as_str)?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests;
