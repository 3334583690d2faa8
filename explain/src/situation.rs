//! What was read about one Pod. Objects stay JSON values, because most of their fields are not used.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use injector::ProbeKind;

/// The result of one request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fetched<T> {
    /// The request was not needed.
    #[default]
    NotRequested,
    Found(T),
    NotFound,
    /// The user lacks a permission.
    Forbidden,
    /// Anything else, in one line.
    Failed(String),
}

impl<T> Fetched<T> {
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            _ => None,
        }
    }
}

/// All results of the requests about one Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Situation {
    /// The time of the requests, RFC 3339.
    pub now: String,
    pub name: String,
    pub namespace: String,
    pub pod: Fetched<Value>,
    /// The items of the list of the Pod's events.
    pub events: Fetched<Vec<Value>>,
    pub namespace_object: Fetched<Value>,
    pub node: Fetched<Value>,
    /// The MutatingWebhookConfiguration of the webhook.
    pub webhook: Fetched<Value>,
    pub answers: Vec<ProbeAnswer>,
    /// `/healthz/ready?verbose` of the sidecar.
    pub readiness: Fetched<Value>,
    /// The metrics of the sidecar, in Prometheus' text format.
    pub metrics: Fetched<String>,
    /// The end of the log of the sidecar, each line with its time stamp.
    pub sidecar_log: Fetched<String>,
    /// The last lines of the previous run of each container that was restarted.
    pub previous_logs: BTreeMap<String, Fetched<String>>,
}

/// What a probe answered when it was requested through the API server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeAnswer {
    pub container: String,
    pub kind: ProbeKind,
    pub result: ProbeResult,
    /// The time until the response was complete.
    pub milliseconds: u64,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProbeResult {
    /// The response of the filter or of the application.
    Response { status: u16, body: String },
    /// The API server could not reach the Pod, for this reason.
    Unreachable(String),
    /// The user lacks the permission.
    Forbidden,
    /// The API server did not respond, or with another error.
    Failed(String),
}

impl ProbeResult {
    /// Tells a response of the Pod from one of the API server, whose errors are objects of the kind
    /// `Status`, or one line of text if the Pod cannot be reached.
    pub fn of_response(status: u16, body: &str) -> Self {
        const UNREACHABLE: &str = "rror trying to reach service: ";
        let object: Option<Value> = serde_json::from_str(body).ok();
        let object = object.filter(|object| object["kind"] == "Status" && object["apiVersion"] == "v1");
        let message = match &object {
            Some(object) => object["message"].as_str().unwrap_or_default(),
            None => body.trim(),
        };
        if let Some((_, reason)) = message.split_once(UNREACHABLE) {
            return Self::Unreachable(reason.trim_matches('\'').to_owned());
        }
        match object {
            None => Self::Response { status, body: body.to_owned() },
            Some(_) if status == 403 => Self::Forbidden,
            Some(_) => Self::Failed(format!("{status}: {message}")),
        }
    }
}

#[cfg(test)]
mod tests;
