//! Sends requests to Envoy's admin interface and to the probe listener, each on a new connection.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use crate::http_client::{self, HttpResponse};
use address::HttpUrl;
use address::RequestFailure;
use readiness::admin::{self, AdminRequest, AdminResponse, DataPathResponse};
use readiness::listeners::{self, DrainPlan, Listener};

const DATA_PATH_LIMIT: usize = 4 * 1024;
const POST_RESPONSE_LIMIT: usize = 4 * 1024;
/// If an expired deadline is noticed later than this, the agent itself was suspended, and the
/// timeout says nothing about Envoy.
const SUSPEND_THRESHOLD: Duration = Duration::from_secs(1);

/// Sends `GET path` on a new connection; `on_accept` is called when the connection is established.
/// Returns `None` if the agent was suspended meanwhile, which is not an observation about Envoy.
async fn get(
    url: &HttpUrl,
    path: &str,
    limit: usize,
    timeout: Duration,
    on_accept: impl FnOnce(),
) -> Option<Result<HttpResponse, RequestFailure>> {
    let deadline = Instant::now() + timeout;
    let response = timeout_at(deadline, async {
        let connection = http_client::connect(&url.endpoint).await.map_err(|_| RequestFailure::Refused)?;
        on_accept();
        connection.get(&url.authority, path, limit).await.map_err(|_| RequestFailure::BadBody)
    });
    match response.await {
        Ok(response) => Some(response),
        Err(_) if deadline.elapsed() > SUSPEND_THRESHOLD => None,
        Err(_) => Some(Err(RequestFailure::Timeout)),
    }
}

/// Sends `request` to the admin interface at `url`; otherwise like `get`.
pub async fn query(
    url: &HttpUrl,
    request: AdminRequest,
    timeout: Duration,
    on_accept: impl FnOnce(),
) -> Option<Result<AdminResponse, RequestFailure>> {
    let response = get(url, request.path(), request.limit(), timeout, on_accept).await?;
    Some(response.and_then(|response| match response.truncated {
        true => Err(RequestFailure::TooLarge),
        false => request.parse(response.status, &response.body),
    }))
}

/// Sends a readiness request to the probe listener at `url`; otherwise like `get`.
pub async fn query_data_path(
    url: &HttpUrl,
    timeout: Duration,
    on_accept: impl FnOnce(),
) -> Option<Result<DataPathResponse, RequestFailure>> {
    let response = get(url, &url.path, DATA_PATH_LIMIT, timeout, on_accept).await?;
    // The reason word shows that the filter itself generated the response.
    let unknown_probe = probe::Reason::UnknownProbe.word().as_bytes();
    Some(response.map(|response| DataPathResponse {
        status: response.status,
        unknown_probe: response.body.windows(unknown_probe.len()).any(|word| word == unknown_probe),
    }))
}

/// Returns the number of connections that the drain of `plan` waits for; `None` means that it is
/// unknown.
pub async fn open_connections(url: &HttpUrl, plan: &DrainPlan, timeout: Duration) -> Option<u64> {
    let limit = AdminRequest::Stats.limit();
    plan.open_connections(&text(url, admin::OPEN_CONNECTIONS, limit, timeout).await?)
}

/// Returns the user's listeners; `None` means that they are unknown. `timeout` is that of each of two
/// requests.
pub async fn listeners(url: &HttpUrl, timeout: Duration) -> Option<Vec<Listener>> {
    let fixed = text(url, listeners::STATIC_LISTENERS, listeners::LIMIT, timeout).await?;
    let dynamic = text(url, listeners::DYNAMIC_LISTENERS, listeners::LIMIT, timeout).await?;
    // The responses can have megabytes, and readiness must not wait until they are parsed.
    spawn_blocking(move || listeners::parse([&fixed, &dynamic])).await.ok()?
}

/// Returns the body of a response with status 200; `None` if there is no such response within `timeout`,
/// or if it has more than `limit` bytes.
pub async fn text(url: &HttpUrl, path: &str, limit: usize, timeout: Duration) -> Option<String> {
    let response = get(url, path, limit, timeout, || ()).await?.ok()?;
    if response.status != 200 || response.truncated {
        return None;
    }
    String::from_utf8(response.body).ok()
}

/// Sends a POST request to the admin interface and returns true if it was answered with 200 in
/// time.
pub async fn post(url: &HttpUrl, path: &str, timeout: Duration) -> bool {
    let response = async {
        let connection = http_client::connect(&url.endpoint).await.ok()?;
        connection.post(&url.authority, path, POST_RESPONSE_LIMIT).await.ok()
    };
    let response = tokio::time::timeout(timeout, response).await.ok().flatten();
    response.is_some_and(|response| response.status == 200)
}
