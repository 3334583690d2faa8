//! Background task that sends readiness requests to Envoy, applies the results and publishes
//! snapshots. It has one loop per channel, so that at most one request per channel is in flight.
//! Clients of port 15021 never wait for these requests.

mod intervals;

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use address::HttpUrl;
use address::RequestFailure;
use agent_state::state::AgentState;
use http_client::admin_client;
use http_client::{ReservedFd, ReservedFdGuard};
use intervals::{AdminIntervals, DATA_PATH_TIMEOUT, DataPathIntervals};
use readiness::admin::AdminRequest;
use readiness::{Channel, Observation, Readiness, Silence};

#[derive(Debug, Clone)]
pub struct PollTargets {
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    /// First timeout of an admin request.
    pub admin_timeout: Duration,
    /// URL of the probe listener; `None` disables its requests.
    pub data_path: Option<HttpUrl>,
    pub child: bool,
}

pub async fn run(state: &AgentState, targets: PollTargets) {
    let PollTargets { admin, admin_timeout, data_path, child } = targets;
    let admin_intervals = AdminIntervals::new(admin_timeout, data_path.is_none() && !child);
    match data_path {
        Some(data_path) => {
            let data_path = poll_data_path(state, data_path, DataPathIntervals::new(child));
            tokio::join!(poll_admin(state, admin, admin_intervals), data_path);
        }
        None => poll_admin(state, admin, admin_intervals).await,
    }
}

async fn poll_admin(state: &AgentState, url: HttpUrl, mut intervals: AdminIntervals) {
    let mut silent = false;
    let mut reserved_fd = ReservedFd::new();
    loop {
        state.wait_until(Readiness::can_request).await;
        let (request, process) =
            state.with_readiness(|ready| (ready.next_admin_request(), ready.process_key()));
        let timeout = intervals.timeout(request, process, state.now());
        let sending = send_admin_request(state, &url, request, process.0, timeout, reserved_fd.release());
        let failure = tokio::select! {
            failure = sending => failure,
            () = state.wait_until(|ready| ready.generation() != process.0) => continue,
        };
        let in_silence = state.with_readiness(|ready| ready.silence().has_begun());
        let pause = intervals.pause(failure, in_silence, state.now());
        let is_periodic = matches!(request, AdminRequest::ServerInfo | AdminRequest::State);
        if is_periodic && silent != failure.is_some() {
            silent = !silent;
            match failure {
                Some(failure) => warn!(?failure, "envoy admin request failed, readiness unchanged"),
                None => warn!("envoy admin request succeeded again"),
            }
        }
        let (next, process_now) =
            state.with_readiness(|ready| (ready.next_admin_request(), ready.process_key()));
        // The next stage follows immediately, but never the first one, to avoid a busy loop.
        if next != request && next != AdminRequest::Ready {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = state.wait_until(|ready| ready.process_key() != process_now) => {}
            () = state.wait_for_silence(Silence::has_begun), if !in_silence => {}
        }
    }
}

async fn send_admin_request(
    state: &AgentState,
    url: &HttpUrl,
    request: AdminRequest,
    generation: u32,
    timeout: Duration,
    _descriptor: ReservedFdGuard<'_>,
) -> Option<RequestFailure> {
    let started = Instant::now();
    let on_accept = || state.apply_result(generation, Observation::Accepted(Channel::Admin));
    let response = admin_client::query(url, request, timeout, on_accept).await?;
    debug!(?request, ?response, "admin request completed");
    let result = response.as_ref().map(|_| ()).map_err(|failure| *failure);
    state.metrics().admin_request(result, started.elapsed());
    state.apply_result(generation, Observation::Admin(response));
    result.err()
}

async fn poll_data_path(state: &AgentState, url: HttpUrl, mut intervals: DataPathIntervals) {
    let mut reserved_fd = ReservedFd::new();
    loop {
        state.wait_until(Readiness::can_request).await;
        let generation = state.with_readiness(Readiness::generation);
        let request = send_data_path_request(state, &url, generation, reserved_fd.release());
        let failure = tokio::select! {
            failure = request => failure,
            () = state.wait_until(|ready| ready.generation() != generation) => continue,
        };
        let (pending, failing, process) = state.with_readiness(|ready| {
            (ready.data_path_pending(), ready.data_path_failing(), ready.process_key())
        });
        let pause = intervals.pause(pending, process, failure, failing, state.now());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = state.wait_until(|ready| ready.process_key() != process) => {}
        }
    }
}

async fn send_data_path_request(
    state: &AgentState,
    url: &HttpUrl,
    generation: u32,
    _descriptor: ReservedFdGuard<'_>,
) -> Option<RequestFailure> {
    let on_accept = || state.apply_result(generation, Observation::Accepted(Channel::DataPath));
    let response = admin_client::query_data_path(url, DATA_PATH_TIMEOUT, on_accept).await?;
    debug!(?response, "data path request completed");
    let result = response.map(|_| ());
    state.metrics().data_path_request(result);
    state.apply_result(generation, Observation::DataPath(response));
    result.err()
}

#[cfg(test)]
mod tests;
