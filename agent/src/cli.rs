//! The small commands. `drain`, `undrain` and `quit` send a request to the local server of the running agent.

#[cfg(feature = "vm")]
pub mod copy;
pub mod drain;
pub mod quit;
#[cfg(feature = "vm")]
pub mod request;
pub mod undrain;

use std::io;

use tokio::time::{Instant, timeout_at};

use address::HttpUrl;
use http_client::ConnectError;

const RESPONSE_LIMIT: usize = 4 * 1024;

#[derive(Debug, PartialEq, Eq)]
enum LocalCallResult {
    Done,
    /// No process accepts connections at the address.
    NotRunning,
    Failed(String),
}

async fn post(url: &HttpUrl, path: &str, deadline: Instant) -> LocalCallResult {
    let timed_out = || LocalCallResult::Failed("no response in time".to_owned());
    let resolved = match timeout_at(deadline, http_client::resolve(&url.endpoint)).await {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => return LocalCallResult::Failed(error.to_string()),
        Err(_) => return LocalCallResult::Failed("name not resolved".to_owned()),
    };
    let connection = match timeout_at(deadline, resolved.dial()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(ConnectError::Refused(error))) if error.kind() == io::ErrorKind::PermissionDenied => {
            return LocalCallResult::Failed(format!("{error}; see --local-group of `run`"));
        }
        Ok(Err(_)) => return LocalCallResult::NotRunning,
        Err(_) => return timed_out(),
    };
    match timeout_at(deadline, connection.post(&url.authority, path, RESPONSE_LIMIT)).await {
        Ok(Ok(response)) if response.status == 200 => LocalCallResult::Done,
        Ok(Ok(response)) => LocalCallResult::Failed(format!("HTTP status {}", response.status)),
        Ok(Err(error)) => LocalCallResult::Failed(error.to_string()),
        Err(_) => timed_out(),
    }
}

#[cfg(test)]
mod tests;
