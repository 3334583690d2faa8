//! The rule about hooks and drains that do not fit in the grace period.

use injector::{pod, yaml};
use serde_json::Value;

use crate::finding::Findings;
use crate::path;
use crate::pod_view::{Container, PodView};
use crate::probe_view::Handler;
use crate::rule::GRACE_PERIOD;

/// Variables of a proxy with the duration of its drain.
const DRAIN_VARIABLES: [&str; 3] =
    ["APP_HEALTH_DRAIN_DEADLINE_SECONDS", "APP_HEALTH_DRAIN_SECONDS", "TERMINATION_DRAIN_DURATION_SECONDS"];
/// The annotation with Istio's `terminationDrainDuration`.
const PROXY_CONFIG: &str = "proxy.istio.io/config";
/// The maximum number of YAML nodes in that annotation.
const PROXY_CONFIG_NODES: usize = 10_000;

pub(super) fn check(pod: &PodView, findings: &mut Findings) {
    let grace = pod.grace_period;
    for container in pod.running() {
        if let Some((seconds, field)) = pre_stop_seconds(container)
            && seconds >= grace
        {
            let message = format!("the hook takes {seconds} s, and terminationGracePeriodSeconds is {grace}");
            findings.add_at(&GRACE_PERIOD, container.place("preStop"), field, message);
        }
        for (index, variable) in pod::list(container.value, "env").iter().enumerate() {
            let seconds = pod::text(variable, "value").parse::<u64>().ok();
            let is_drain = DRAIN_VARIABLES.contains(&pod::name(variable));
            if let Some(seconds) = seconds.filter(|seconds| is_drain && *seconds >= grace) {
                let name = pod::name(variable);
                let message = format!("{name} is {seconds}, and terminationGracePeriodSeconds is {grace}");
                findings.add_at(&GRACE_PERIOD, container.place(""), &format!("env[{index}]"), message);
            }
        }
    }
    if let Some(seconds) = istio_drain(pod.pod).filter(|seconds| *seconds >= grace) {
        let message =
            format!("terminationDrainDuration is {seconds} s, and terminationGracePeriodSeconds is {grace}");
        findings.add(&GRACE_PERIOD, &path::annotation(PROXY_CONFIG), message);
    }
}

/// Returns how long the preStop hook takes at least, as far as its text shows, and the field.
fn pre_stop_seconds(container: &Container) -> Option<(u64, &'static str)> {
    let hook = container.hooks().find(|hook| hook.name == "preStop")?;
    match hook.handler()? {
        Handler::Sleep(fields) => Some((fields["seconds"].as_u64()?, "sleep.seconds")),
        handler @ Handler::Exec(_) => {
            let command: Vec<&str> = handler.command().collect();
            let seconds = exec_seconds(&command.join(" "));
            (seconds > 0).then_some((seconds, "exec.command"))
        }
        _ => None,
    }
}

/// Adds up the waiting times in a command: `sleep 5`, and `--waitSeconds 5` of the agent's drain.
fn exec_seconds(command: &str) -> u64 {
    let is_separator = |char: char| char.is_whitespace() || ";&|=()'\"".contains(char);
    let words: Vec<&str> = command.split(is_separator).filter(|word| !word.is_empty()).collect();
    let waits = words.windows(2).filter_map(|pair| match pair {
        ["sleep" | "/bin/sleep" | "/usr/bin/sleep", time] => duration_seconds(time),
        ["--waitSeconds" | "--wait-seconds", time] => time.parse().ok(),
        _ => None,
    });
    waits.fold(0, u64::saturating_add)
}

/// Reads a duration such as `5`, `5s`, `2m` or `1h`, and rounds it down to seconds.
fn duration_seconds(text: &str) -> Option<u64> {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        // A fraction: its whole seconds.
        fraction if fraction.starts_with('.') => 1,
        _ => return None,
    };
    number.checked_mul(seconds)
}

/// Returns the drain duration of Istio's proxy in seconds, if an annotation sets it.
fn istio_drain(pod: &Value) -> Option<u64> {
    let text = pod::annotation(pod, PROXY_CONFIG)?.as_str()?;
    let config = yaml::value_within(text, PROXY_CONFIG_NODES).ok()?;
    duration_seconds(config.get("terminationDrainDuration")?.as_str()?)
}

#[cfg(test)]
mod tests;
