//! Sends requests to Envoy's admin interface and to the probe listener, each on a new connection.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::admin::{self, AdminAnswer, AdminQuestion, DataPathAnswer, Failure};
use crate::address::HttpUrl;
use crate::http_client::{self, Connection};

/// Maximum number of bytes that are read of a response of the probe listener.
const DATA_PATH_LIMIT: usize = 4 * 1024;
/// Maximum number of bytes that are read of the response to a POST request.
const TOLD_LIMIT: usize = 4 * 1024;
/// If an expired deadline is noticed later than this, the agent itself was suspended, and the
/// timeout says nothing about Envoy.
const STANDSTILL: Duration = Duration::from_secs(1);

/// Established connection, whose request may use the rest of the deadline.
pub struct Asked {
    connection: Connection,
    deadline: Instant,
}

/// Connects to `url`. Returns `None` if the agent was suspended meanwhile, which is not an
/// observation about Envoy.
pub async fn connect(url: &HttpUrl, within: Duration) -> Option<Result<Asked, Failure>> {
    let deadline = Instant::now() + within;
    match timeout_at(deadline, http_client::connect(&url.endpoint)).await {
        Ok(Ok(connection)) => Some(Ok(Asked { connection, deadline })),
        Ok(Err(_)) => Some(Err(Failure::Refused)),
        Err(_) => timed_out(deadline).map(Err),
    }
}

/// Sends a POST request to the admin interface and returns true if it was answered with 200 in
/// time.
pub async fn tell(url: &HttpUrl, path: &str, within: Duration) -> bool {
    let told = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        connection.post(&url.authority, path, TOLD_LIMIT).await.ok()
    };
    tokio::time::timeout(within, told).await.ok().flatten().is_some_and(|answer| answer.status == 200)
}

/// Returns the number of open connections as counted by [`admin::open_connections`]; `None` means
/// that it is unknown.
pub async fn open_connections(url: &HttpUrl, within: Duration) -> Option<u64> {
    let asked = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        let path = admin::OPEN_CONNECTIONS;
        connection.get(&url.authority, path, AdminQuestion::Stats.limit()).await.ok()
    };
    let answer = tokio::time::timeout(within, asked).await.ok().flatten()?;
    if answer.status != 200 || answer.cut {
        return None;
    }
    admin::open_connections(std::str::from_utf8(&answer.body).ok()?)
}

impl Asked {
    pub async fn admin(self, url: &HttpUrl, question: AdminQuestion) -> Option<Result<AdminAnswer, Failure>> {
        let answer = match self.get(&url.authority, question.path(), question.limit()).await? {
            Ok(answer) => answer,
            Err(failure) => return Some(Err(failure)),
        };
        if answer.cut {
            return Some(Err(Failure::TooLarge));
        }
        Some(question.parse(answer.status, &answer.body))
    }

    pub async fn data_path(self, url: &HttpUrl) -> Option<Result<DataPathAnswer, Failure>> {
        let answer = self.get(&url.authority, &url.path, DATA_PATH_LIMIT).await?;
        // The reason word shows that the filter itself generated the response.
        let itself = probe::Reason::UnknownProbe.word().as_bytes();
        Some(answer.map(|answer| DataPathAnswer {
            status: answer.status,
            unknown_probe: answer.body.windows(itself.len()).any(|word| word == itself),
        }))
    }

    async fn get(
        self,
        authority: &str,
        path: &str,
        limit: usize,
    ) -> Option<Result<http_client::Answer, Failure>> {
        let Self { connection, deadline } = self;
        match timeout_at(deadline, connection.get(authority, path, limit)).await {
            Ok(answer) => Some(answer.map_err(|_| Failure::BadBody)),
            Err(_) => timed_out(deadline).map(Err),
        }
    }
}

fn timed_out(deadline: Instant) -> Option<Failure> {
    (deadline.elapsed() <= STANDSTILL).then_some(Failure::Timeout)
}
