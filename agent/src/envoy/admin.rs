//! Asks Envoy: its admin port, and the data path. One connection per question.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{AdminAnswer, AdminQuestion};
use crate::address::HttpUrl;
use crate::http_client::{self, Connection};
use crate::readiness::{DataPathAnswer, Failure};

/// The longest answer of the data path that is read, in bytes.
const DATA_PATH_LIMIT: usize = 4 * 1024;
/// The longest answer to what is told, in bytes.
const TOLD_LIMIT: usize = 4 * 1024;
/// A deadline noticed this late ran out because the agent itself stood still; that says nothing about Envoy.
const STANDSTILL: Duration = Duration::from_secs(1);

/// A question that has a connection; what remains of its deadline is for the answer.
pub struct Asked {
    connection: Connection,
    deadline: Instant,
}

/// Dials `url`. `None`: the agent stood still meanwhile, which is no observation.
pub async fn connect(url: &HttpUrl, within: Duration) -> Option<Result<Asked, Failure>> {
    let deadline = Instant::now() + within;
    match timeout_at(deadline, http_client::connect(&url.endpoint)).await {
        Ok(Ok(connection)) => Some(Ok(Asked { connection, deadline })),
        Ok(Err(_)) => Some(Err(Failure::Refused)),
        Err(_) => timed_out(deadline).map(Err),
    }
}

/// Says something to the admin port that has no answer but its status; `false`: not understood, or not in time.
pub async fn tell(url: &HttpUrl, path: &str, within: Duration) -> bool {
    let told = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        connection.post(&url.authority, path, TOLD_LIMIT).await.ok()
    };
    tokio::time::timeout(within, told).await.ok().flatten().is_some_and(|answer| answer.status == 200)
}

/// The connections that are open, by the rule of [`super::open_connections`]; `None`: it cannot be known.
pub async fn open_connections(url: &HttpUrl, within: Duration) -> Option<u64> {
    let asked = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        let path = super::OPEN_CONNECTIONS;
        connection.get(&url.authority, path, AdminQuestion::Stats.limit()).await.ok()
    };
    let answer = tokio::time::timeout(within, asked).await.ok().flatten()?;
    if answer.status != 200 || answer.cut {
        return None;
    }
    super::open_connections(std::str::from_utf8(&answer.body).ok()?)
}

impl Asked {
    /// Asks the admin port.
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

    /// Asks the probe listener.
    pub async fn data_path(self, url: &HttpUrl) -> Option<Result<DataPathAnswer, Failure>> {
        let answer = self.get(&url.authority, &url.path, DATA_PATH_LIMIT).await?;
        // The word by which the filter says that it answered itself.
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
