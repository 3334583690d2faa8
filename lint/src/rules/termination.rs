//! The rule about hooks and drains that do not fit in the grace period.

use injector::{Handler, Probe, ProbeKind, pod, yaml};
use serde_json::Value;

use crate::finding::{Findings, Place};
use crate::pod_view::PodView;
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
        if let Some(hook) = container.probe(ProbeKind::PreStop)
            && let Some((length, field)) = hook_length(hook)
            && length >= Length::Seconds(grace)
        {
            let takes = match length {
                Length::Seconds(seconds) => format!("takes {seconds} s"),
                Length::Endless => "never ends".to_owned(),
            };
            let message = format!("the hook {takes}, and terminationGracePeriodSeconds is {grace}");
            findings.add_at(&GRACE_PERIOD, Place::of_probe(container, hook), field, message);
        }
        for (index, variable) in pod::list(container.value, "env").iter().enumerate() {
            let seconds = pod::text(variable, "value").parse::<u64>().ok();
            let is_drain = DRAIN_VARIABLES.contains(&pod::name(variable));
            if let Some(seconds) = seconds.filter(|seconds| is_drain && *seconds >= grace) {
                let name = pod::name(variable);
                let message = format!("{name} is {seconds}, and terminationGracePeriodSeconds is {grace}");
                findings.add_at(&GRACE_PERIOD, Place::of(container), &format!("env[{index}]"), message);
            }
        }
    }
    if let Some(seconds) = istio_drain(pod.pod).filter(|seconds| *seconds >= grace) {
        let message =
            format!("terminationDrainDuration is {seconds} s, and terminationGracePeriodSeconds is {grace}");
        findings.add(&GRACE_PERIOD, &pod::annotation_path(PROXY_CONFIG), message);
    }
}

/// How long a command takes at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Length {
    Seconds(u64),
    Endless,
}

/// Returns how long a hook takes at least, as far as its text shows, and the field.
fn hook_length(hook: Probe) -> Option<(Length, &'static str)> {
    match hook.handler()? {
        Handler::Sleep(fields) => Some((Length::Seconds(fields["seconds"].as_u64()?), "sleep.seconds")),
        handler @ Handler::Exec(_) => {
            let command: Vec<&str> = handler.command().collect();
            let length = exec_length(&command.join(" "));
            (length > Length::Seconds(0)).then_some((length, "exec.command"))
        }
        Handler::Network(..) | Handler::Unknown(_) => None,
    }
}

/// Adds up the waiting times in a command: `sleep 5`, and `--waitSeconds 5` of the agent's drain.
/// A sleep in the background does not count.
fn exec_length(command: &str) -> Length {
    // The & of a redirection, such as 2>&1 or &>/dev/null, separates no commands.
    let command = command.replace("&&", ";").replace(">&", ">").replace("<&", "<").replace("&>", " >");
    let mut total = 0.0;
    let waits = commands(&command).any(|(words, _)| words.contains(&"wait"));
    for (words, in_background) in commands(&command) {
        if in_background && !waits {
            continue;
        }
        for (index, word) in words.iter().enumerate() {
            let rest = &words[index + 1..];
            let of_sleep = || rest.iter().map_while(|word| sleep_seconds(word)).sum::<f64>();
            let seconds = match *word {
                "sleep" | "/bin/sleep" | "/usr/bin/sleep" => bounded(&words[..index], of_sleep()),
                "--waitSeconds" | "--wait-seconds" => {
                    rest.first().and_then(|word| word.parse::<u32>().ok()).map_or(0.0, f64::from)
                }
                "tail" if follows(rest) => bounded(&words[..index], f64::INFINITY),
                _ => 0.0,
            };
            total += seconds;
        }
    }
    if total.is_infinite() { Length::Endless } else { Length::Seconds(total as u64) }
}

/// Splits a script into simple commands; the second value is true for one in the background.
fn commands(script: &str) -> impl Iterator<Item = (Vec<&str>, bool)> {
    let separators = [';', '|', '&', '(', ')', '\n'];
    script.split_inclusive(separators).map(move |command| {
        let is_space =
            |char: char| char.is_whitespace() || separators.contains(&char) || "='\"".contains(char);
        let words = command.split(is_space).filter(|word| !word.is_empty()).collect();
        (words, command.ends_with('&'))
    })
}

/// Reads a time of the command sleep: a number with an optional unit, or `infinity`.
fn sleep_seconds(text: &str) -> Option<f64> {
    let units = [('s', 1.0), ('m', 60.0), ('h', 3600.0), ('d', 86400.0)];
    let unit = units.into_iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = unit.unwrap_or((text, 1.0));
    let is_number = number.eq_ignore_ascii_case("infinity")
        || number.eq_ignore_ascii_case("inf")
        || number.starts_with(|char: char| char.is_ascii_digit() || char == '.');
    let number: f64 = number.parse().ok().filter(|_| is_number)?;
    Some(number * seconds)
}

/// Returns the time of a command after `before`, which may be `timeout 10` and its options.
fn bounded(before: &[&str], seconds: f64) -> f64 {
    let timeout = before.iter().rposition(|word| *word == "timeout" || word.ends_with("/timeout"));
    let limit =
        timeout.and_then(|index| before[index + 1..].iter().rev().find_map(|word| sleep_seconds(word)));
    // A limit of 0 is none.
    limit.filter(|limit| *limit > 0.0).map_or(seconds, |limit| limit.min(seconds))
}

/// True if the arguments of tail let it read a file for ever.
fn follows(arguments: &[&str]) -> bool {
    let short = |word: &str| word.starts_with('-') && !word.starts_with("--") && word.contains(['f', 'F']);
    arguments.iter().any(|word| short(word) || *word == "--follow")
        && !arguments.iter().any(|word| word.starts_with("--pid"))
}

/// Reads a duration of Istio such as `5s`, `1m30s` or `1.5h`, and rounds it down to seconds.
fn duration_seconds(text: &str) -> Option<u64> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit() && char != '.')?;
        let (number, after) = rest.split_at(digits);
        let (unit, seconds) = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
            .into_iter()
            .find(|(unit, _)| after.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * seconds;
        rest = &after[unit.len()..];
    }
    (!text.is_empty()).then_some(total as u64)
}

/// Returns the drain duration of Istio's proxy in seconds, if an annotation sets it.
fn istio_drain(pod: &Value) -> Option<u64> {
    let text = pod::annotation(pod, PROXY_CONFIG)?.as_str()?;
    let config = yaml::value_within(text, PROXY_CONFIG_NODES).ok()?;
    duration_seconds(config.get("terminationDrainDuration")?.as_str()?)
}

#[cfg(test)]
mod tests;
