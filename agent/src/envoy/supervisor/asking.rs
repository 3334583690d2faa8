//! What a drain asks Envoy's admin port, one question at a time.

use std::pin::Pin;
use std::time::Duration;

use crate::address::HttpUrl;
use crate::drain::Step;
use crate::envoy::admin;

/// The deadline of a question.
const DEADLINE: Duration = Duration::from_secs(1);

/// An answer to a drain's question.
pub(super) enum Answer {
    /// Whether Envoy has understood that it is to drain.
    Told(bool),
    /// The application's open connections; `None`: there are no statistics to be had.
    Counted(Option<u64>),
}

/// The question that is under way, if there is one.
#[derive(Default)]
pub(super) struct Asking(Option<Pin<Box<dyn Future<Output = Answer> + Send>>>);

impl Asking {
    /// Asks what `step` says, unless a question is under way; `path` is what Envoy is told.
    pub(super) fn ask(&mut self, step: Step, admin: &HttpUrl, path: &'static str) {
        if self.0.is_some() {
            return;
        }
        let admin = admin.clone();
        self.0 = match step {
            Step::Count => {
                Some(Box::pin(
                    async move { Answer::Counted(admin::open_connections(&admin, DEADLINE).await) },
                ))
            }
            Step::Tell => {
                Some(Box::pin(async move { Answer::Told(admin::tell(&admin, path, DEADLINE).await) }))
            }
            Step::Rest | Step::Wait(_) | Step::End => None,
        };
    }

    /// Returns with the answer; may be dropped and called again.
    pub(super) async fn answer(&mut self) -> Answer {
        let Some(question) = &mut self.0 else { return std::future::pending().await };
        let answer = question.as_mut().await;
        self.0 = None;
        answer
    }
}
