//! Background task that sends readiness requests to Envoy, applies the results and publishes
//! snapshots. It has one loop per channel, so that at most one request per channel is in flight.
//! Clients of port 15021 never wait for these requests.

mod intervals;

use std::time::Duration;

use tokio::time::Instant;
use tracing::{debug, warn};

use crate::address::HttpUrl;
use crate::envoy::admin::{AdminQuestion, Failure};
use crate::envoy::admin_client;
use crate::http_client::{Released, Spare};
use crate::readiness::{Channel, Observation, Ready};
use crate::state::Observer;
use intervals::{AdminPace, DataPathPace};

/// Destinations of the readiness requests.
#[derive(Debug, Clone)]
pub struct Questions {
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    /// First timeout of an admin request.
    pub admin_timeout: Duration,
    /// URL of the probe listener; `None` disables its requests.
    pub data_path: Option<HttpUrl>,
    /// True if Envoy is a child process.
    pub child: bool,
}

/// Sends requests without end.
pub async fn run(observer: &Observer, questions: Questions) {
    let Questions { admin, admin_timeout, data_path, child } = questions;
    let admin_pace = AdminPace::new(admin_timeout, data_path.is_none() && !child);
    match data_path {
        Some(data_path) => {
            let data_path = ask_data_path(observer, data_path, DataPathPace::new(child));
            tokio::join!(ask_admin(observer, admin, admin_pace), data_path);
        }
        None => ask_admin(observer, admin, admin_pace).await,
    }
}

async fn ask_admin(observer: &Observer, url: HttpUrl, mut pace: AdminPace) {
    let mut silent = false;
    let mut spare = Spare::new();
    loop {
        observer.until(Ready::has_envoy).await;
        let (question, life) = observer.look(|ready| (ready.admin_question(), ready.life()));
        let deadline = pace.deadline(question, life, observer.now());
        let asked = admin_question(observer, &url, question, life.0, deadline, spare.release());
        let failure = tokio::select! {
            failure = asked => failure,
            () = observer.until(|ready| ready.generation() != life.0) => continue,
        };
        let pause = pace.pause(failure, observer.now());
        if question == AdminQuestion::ServerInfo && silent != failure.is_some() {
            silent = !silent;
            match failure {
                Some(failure) => warn!(?failure, "envoy admin request failed, readiness unchanged"),
                None => warn!("envoy admin request succeeded again"),
            }
        }
        let (next, life_now) = observer.look(|ready| (ready.admin_question(), ready.life()));
        // The next stage follows immediately, but never the first one, to avoid a busy loop.
        if next != question && next != AdminQuestion::Ready {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = observer.until(|ready| ready.life() != life_now) => {}
        }
    }
}

async fn admin_question(
    observer: &Observer,
    url: &HttpUrl,
    question: AdminQuestion,
    generation: u32,
    deadline: Duration,
    _descriptor: Released<'_>,
) -> Option<Failure> {
    let asked_at = Instant::now();
    let answer = match admin_client::connect(url, deadline).await? {
        Ok(asked) => {
            observer.observe(generation, Observation::Accepted(Channel::Admin));
            asked.admin(url, question).await?
        }
        Err(failure) => Err(failure),
    };
    debug!(?question, ?answer, "admin request completed");
    let failure = answer.as_ref().err().copied();
    observer.metrics().admin_question(failure, asked_at.elapsed());
    observer.observe(generation, Observation::Admin(answer));
    failure
}

async fn ask_data_path(observer: &Observer, url: HttpUrl, mut pace: DataPathPace) {
    let mut spare = Spare::new();
    loop {
        observer.until(Ready::has_envoy).await;
        let generation = observer.look(Ready::generation);
        let asked = data_path_question(observer, &url, generation, pace.deadline(), spare.release());
        let failure = tokio::select! {
            failure = asked => failure,
            () = observer.until(|ready| ready.generation() != generation) => continue,
        };
        let (pending, failing, life) =
            observer.look(|ready| (ready.data_path_pending(), ready.data_path_failing(), ready.life()));
        let pause = pace.pause(pending, life, failure, failing, observer.now());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = observer.until(|ready| ready.life() != life) => {}
        }
    }
}

async fn data_path_question(
    observer: &Observer,
    url: &HttpUrl,
    generation: u32,
    deadline: Duration,
    _descriptor: Released<'_>,
) -> Option<Failure> {
    let answer = match admin_client::connect(url, deadline).await? {
        Ok(asked) => {
            observer.observe(generation, Observation::Accepted(Channel::DataPath));
            asked.data_path(url).await?
        }
        Err(failure) => Err(failure),
    };
    debug!(?answer, "data path request completed");
    let failure = answer.as_ref().err().copied();
    observer.metrics().data_path_question(failure);
    observer.observe(generation, Observation::DataPath(answer));
    failure
}

#[cfg(test)]
mod tests;
