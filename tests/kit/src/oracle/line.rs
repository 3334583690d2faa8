//! The protocol of the prober: each request and each response is a line of JSON. This module does
//! no I/O.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, AskError, ProbeResult, Question};

/// Encodes a request as a line, including the line feed.
pub(super) fn write(id: u64, question: &Question) -> String {
    let line = json!({
        "id": id.to_string(),
        "podIP": question.pod_ip,
        "timeoutSeconds": question.timeout.as_secs_f64(),
        "handler": question.handler,
        "repeat": question.repeat,
        "warmUp": question.warm_up,
    });
    format!("{line}\n")
}

/// Decodes a line to the ID of the request and the response.
pub(super) fn read(line: &str) -> (Option<u64>, Result<Answer, AskError>) {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let id = value["id"].as_str().and_then(|id| id.parse().ok());
    let answer = match value["fault"].as_str() {
        Some(fault) => Err(AskError::Fault(fault.to_owned())),
        None => answer(&value).ok_or_else(|| AskError::Unreadable(line.to_owned())),
    };
    (id, answer)
}

fn answer(value: &Value) -> Option<Answer> {
    let result = result(value["result"].as_str()?)?;
    let micros = value["latenciesMicroseconds"].as_array()?;
    let results = match value["results"].as_object() {
        Some(results) => {
            results.iter().map(|(name, count)| Some((self::result(name)?, count.as_u64()?))).collect()
        }
        // A single probe was run.
        None => Some([(result, 1)].into()),
    };
    Some(Answer {
        result,
        output: value["output"].as_str()?.to_owned(),
        error: value["error"].as_str().map(str::to_owned),
        latencies: micros.iter().map(latency).collect::<Option<_>>()?,
        results: results?,
    })
}

fn latency(micros: &Value) -> Option<Duration> {
    Duration::try_from_secs_f64(micros.as_f64()? / 1e6).ok()
}

fn result(name: &str) -> Option<ProbeResult> {
    match name {
        "success" => Some(ProbeResult::Success),
        "warning" => Some(ProbeResult::Warning),
        "failure" => Some(ProbeResult::Failure),
        "unknown" => Some(ProbeResult::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
