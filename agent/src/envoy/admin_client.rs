//! Sends requests to Envoy's admin interface and to the probe listener, each on a new connection.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::admin::{self, AdminRequest, AdminResponse, DataPathResponse, RequestFailure};
use crate::address::HttpUrl;
use crate::http_client::{self, Connection};

/// Maximum number of bytes that are read of a response of the probe listener.
const DATA_PATH_LIMIT: usize = 4 * 1024;
/// Maximum number of bytes that are read of the response to a POST request.
const POST_RESPONSE_LIMIT: usize = 4 * 1024;
/// If an expired deadline is noticed later than this, the agent itself was suspended, and the
/// timeout says nothing about Envoy.
const SUSPEND_THRESHOLD: Duration = Duration::from_secs(1);

/// Established connection, whose request may use the rest of the deadline.
pub struct EnvoyConnection {
    connection: Connection,
    deadline: Instant,
}

/// Connects to `url`. Returns `None` if the agent was suspended meanwhile, which is not an
/// observation about Envoy.
pub async fn connect(url: &HttpUrl, within: Duration) -> Option<Result<EnvoyConnection, RequestFailure>> {
    let deadline = Instant::now() + within;
    match timeout_at(deadline, http_client::connect(&url.endpoint)).await {
        Ok(Ok(connection)) => Some(Ok(EnvoyConnection { connection, deadline })),
        Ok(Err(_)) => Some(Err(RequestFailure::Refused)),
        Err(_) => timed_out(deadline).map(Err),
    }
}

/// Sends a POST request to the admin interface and returns true if it was answered with 200 in
/// time.
pub async fn post(url: &HttpUrl, path: &str, within: Duration) -> bool {
    let response = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        connection.post(&url.authority, path, POST_RESPONSE_LIMIT).await.ok()
    };
    tokio::time::timeout(within, response).await.ok().flatten().is_some_and(|response| response.status == 200)
}

/// Returns the number of open connections as counted by [`admin::open_connections`]; `None` means
/// that it is unknown.
pub async fn open_connections(url: &HttpUrl, within: Duration) -> Option<u64> {
    let response = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        let path = admin::OPEN_CONNECTIONS;
        connection.get(&url.authority, path, AdminRequest::Stats.limit()).await.ok()
    };
    let response = tokio::time::timeout(within, response).await.ok().flatten()?;
    if response.status != 200 || response.truncated {
        return None;
    }
    admin::open_connections(std::str::from_utf8(&response.body).ok()?)
}

impl EnvoyConnection {
    pub async fn admin(
        self,
        url: &HttpUrl,
        request: AdminRequest,
    ) -> Option<Result<AdminResponse, RequestFailure>> {
        let response = match self.get(&url.authority, request.path(), request.limit()).await? {
            Ok(response) => response,
            Err(failure) => return Some(Err(failure)),
        };
        if response.truncated {
            return Some(Err(RequestFailure::TooLarge));
        }
        Some(request.parse(response.status, &response.body))
    }

    pub async fn data_path(self, url: &HttpUrl) -> Option<Result<DataPathResponse, RequestFailure>> {
        let response = self.get(&url.authority, &url.path, DATA_PATH_LIMIT).await?;
        // The reason word shows that the filter itself generated the response.
        let unknown_probe = probe::Reason::UnknownProbe.word().as_bytes();
        Some(response.map(|response| DataPathResponse {
            status: response.status,
            unknown_probe: response.body.windows(unknown_probe.len()).any(|word| word == unknown_probe),
        }))
    }

    async fn get(
        self,
        authority: &str,
        path: &str,
        limit: usize,
    ) -> Option<Result<http_client::HttpResponse, RequestFailure>> {
        let Self { connection, deadline } = self;
        match timeout_at(deadline, connection.get(authority, path, limit)).await {
            Ok(response) => Some(response.map_err(|_| RequestFailure::BadBody)),
            Err(_) => timed_out(deadline).map(Err),
        }
    }
}

fn timed_out(deadline: Instant) -> Option<RequestFailure> {
    (deadline.elapsed() <= SUSPEND_THRESHOLD).then_some(RequestFailure::Timeout)
}
