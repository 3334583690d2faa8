//! Tasks that must run as long as the agent. When one ends, the agent exits too, because nothing else
//! would detect it.

use tokio::task::{JoinError, JoinHandle};

use agent_output::exit::Failure;

/// Waits until the task ends.
pub async fn failure(part: &str, task: &mut JoinHandle<()>) -> Failure {
    error(part, task.await.err())
}

/// Like [`failure`]; it never returns if there is no task.
pub async fn failure_if_any(part: &str, task: &mut Option<JoinHandle<()>>) -> Failure {
    match task {
        Some(task) => failure(part, task).await,
        None => std::future::pending().await,
    }
}

/// Describes the end of a task; `None` if it returned.
pub fn error(part: &str, error: Option<JoinError>) -> Failure {
    let how = error.map_or_else(|| "the task returned".to_owned(), |error| error.to_string());
    Failure::General(format!(
        "{part}: {how}; this is a bug in app-health-agent, which now exits to be restarted"
    ))
}

#[cfg(test)]
mod tests;
