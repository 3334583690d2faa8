//! Lints the workloads of a cluster.

use std::time::Duration;

use kube::{Client, Config, Error};
use serde_json::Value;
use tokio::time::timeout;

use crate::config::Scope;
use injector::pod;
use lint::output::Results;
use lint::{Options, lint as lint_object};
use serving::exit::Failure;

/// Deadline of one request.
const DEADLINE: Duration = Duration::from_secs(30);
/// Objects in one response of the API server.
const PAGE: usize = 500;
/// The API of each resource, its name in URLs, and its name in a Role.
const RESOURCES: [(&str, &str, &str); 8] = [
    ("/apis/apps/v1", "deployments", "deployments.apps"),
    ("/apis/apps/v1", "statefulsets", "statefulsets.apps"),
    ("/apis/apps/v1", "daemonsets", "daemonsets.apps"),
    ("/apis/apps/v1", "replicasets", "replicasets.apps"),
    ("/api/v1", "replicationcontrollers", "replicationcontrollers"),
    ("/apis/batch/v1", "cronjobs", "cronjobs.batch"),
    ("/apis/batch/v1", "jobs", "jobs.batch"),
    ("/api/v1", "pods", "pods"),
];

/// Lints every workload of the scope that no other workload owns.
///
/// # Errors
/// Fails if there is no kubeconfig, the API server is not reachable, or a permission lacks; the
/// error then names all permissions that are needed.
pub(super) async fn lint(scope: Scope, options: &Options) -> Result<Results, Failure> {
    serving::tls::install_crypto()?;
    let unavailable = |error: String| Failure::Unavailable(format!("--cluster: {error}"));
    let mut config = Config::infer().await.map_err(|error| unavailable(format!("no API server: {error}")))?;
    config.connect_timeout = Some(DEADLINE);
    let namespace = match scope {
        Scope::AllNamespaces => None,
        Scope::Namespace(name) => Some(name.unwrap_or_else(|| config.default_namespace.clone())),
    };
    let client = Client::try_from(config).map_err(|error| unavailable(format!("no API server: {error}")))?;
    let mut results = Results::default();
    for (api, plural, resource) in RESOURCES {
        let path = match &namespace {
            None => format!("{api}/{plural}"),
            Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
        };
        let mut next = String::new();
        loop {
            let url = format!("{path}?limit={PAGE}{next}");
            let mut page = match list(&client, &url).await {
                Ok(page) => page,
                Err(error) => return Err(failure(error, resource, namespace.as_deref())),
            };
            remove_owned(&mut page);
            let report = lint_object(&page, options);
            results.findings.extend(report.findings);
            results.suppressed += report.suppressed;
            results.pods += report.pods;
            match pod::text(&page["metadata"], "continue") {
                "" => break,
                token => next = format!("&continue={}", percent_encoded(token)),
            }
        }
    }
    Ok(results)
}

/// Why a list could not be read.
enum ListError {
    Forbidden,
    Unavailable(String),
}

async fn list(client: &Client, url: &str) -> Result<Value, ListError> {
    let request = hyper::Request::get(url)
        .body(Vec::new())
        .map_err(|error| ListError::Unavailable(error.to_string()))?;
    match timeout(DEADLINE, client.request(request)).await {
        Ok(Ok(page)) => Ok(page),
        Ok(Err(Error::Api(status))) if status.code == 403 => Err(ListError::Forbidden),
        Ok(Err(error)) => Err(ListError::Unavailable(error.to_string())),
        Err(_) => Err(ListError::Unavailable(format!("no response within {} s", DEADLINE.as_secs()))),
    }
}

fn failure(error: ListError, resource: &str, namespace: Option<&str>) -> Failure {
    let place = match namespace {
        Some(namespace) => format!("in the namespace {namespace}"),
        None => "in all namespaces".to_owned(),
    };
    match error {
        ListError::Unavailable(reason) => {
            Failure::Unavailable(format!("--cluster: cannot list {resource} {place}: {reason}"))
        }
        ListError::Forbidden => {
            let needed: Vec<&str> = RESOURCES.iter().map(|(_, _, resource)| *resource).collect();
            Failure::CannotRead(format!(
                "--cluster: cannot list {resource} {place}: forbidden; the verb list is needed for {}",
                needed.join(", ")
            ))
        }
    }
}

/// Removes objects that a controller has created from another object, which is linted itself.
fn remove_owned(page: &mut Value) {
    let Some(items) = page.get_mut("items").and_then(Value::as_array_mut) else { return };
    items.retain(|item| {
        let owners = pod::list(&item["metadata"], "ownerReferences");
        !owners.iter().any(|owner| owner["controller"] == true)
    });
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
