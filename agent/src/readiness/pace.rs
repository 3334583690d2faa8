//! PURE. How fast Envoy is asked, and how long an answer may take.

use std::time::Duration;

use super::Failure;
use crate::envoy::AdminQuestion;

/// While something is waited for, so often at first: readiness shall be seen in the moment in which it comes ...
const EAGER: Duration = Duration::from_millis(20);
/// ... for so long ...
const EAGER_FOR: Duration = Duration::from_secs(10);
/// ... and then so often.
const PATIENT: Duration = Duration::from_millis(250);
/// Statistics cost Envoy's main thread more: from here, doubling, to the next.
const STATS_FIRST: Duration = Duration::from_millis(100);
const STATS_LONGEST: Duration = Duration::from_secs(1);
/// `/server_info` of an Envoy that is ready: a drain, another version, a restart.
const SERVER_INFO: Duration = Duration::from_secs(15);
/// The same where no data path is asked, and nothing else would show Envoy's death.
const SERVER_INFO_ALONE: Duration = Duration::from_secs(1);
/// The longest deadline of an admin question.
const ADMIN_DEADLINE: Duration = Duration::from_secs(30);
/// The data path of an Envoy that is ready ...
const DATA_PATH_MET: Duration = Duration::from_secs(5);
/// ... after a question without an answer ...
const DATA_PATH_FAILED: Duration = Duration::from_secs(1);
/// ... and always if nobody tells us of Envoy's end.
const DATA_PATH_WATCH: Duration = Duration::from_millis(500);
/// Deadline of a data-path question.
const DATA_PATH_DEADLINE: Duration = Duration::from_secs(1);
/// The second refusal, which is a death.
const REFUSED: Duration = Duration::from_millis(100);

fn eager(stage: Duration) -> Duration {
    if stage < EAGER_FOR { EAGER } else { PATIENT }
}

/// The pace of admin questions.
#[derive(Debug)]
pub struct AdminPace {
    first_deadline: Duration,
    /// Nothing else shows Envoy's death.
    alone: bool,
    deadline: Duration,
    /// What is asked, of which life, since when.
    stage: Option<(AdminQuestion, (u32, bool), Duration)>,
    stats_pause: Duration,
}

impl AdminPace {
    /// `first_deadline`: until a question runs into it; `alone`: nothing else shows Envoy's death.
    pub fn new(first_deadline: Duration, alone: bool) -> Self {
        Self { first_deadline, alone, deadline: first_deadline, stage: None, stats_pause: STATS_FIRST }
    }

    /// The deadline of `question`, asked now about this `life` of Envoy.
    pub fn deadline(&mut self, question: AdminQuestion, life: (u32, bool), now: Duration) -> Duration {
        let goes_on = self.stage.is_some_and(|(asked, of, _)| (asked, of) == (question, life));
        if !goes_on {
            self.stage = Some((question, life, now));
            self.deadline = self.first_deadline;
            self.stats_pause = STATS_FIRST;
        }
        self.deadline
    }

    /// The pause after the question, if the next one is the same. `failure`: it had no answer.
    pub fn pause(&mut self, failure: Option<Failure>, now: Duration) -> Duration {
        self.deadline = match failure {
            Some(Failure::Timeout) => (self.deadline * 2).min(ADMIN_DEADLINE),
            _ => self.first_deadline,
        };
        match self.stage {
            Some((AdminQuestion::Stats, ..)) => {
                let pause = self.stats_pause;
                self.stats_pause = (pause * 2).min(STATS_LONGEST);
                pause
            }
            Some((AdminQuestion::ServerInfo, ..)) if failure == Some(Failure::Refused) => REFUSED,
            Some((AdminQuestion::ServerInfo, ..)) if self.alone => SERVER_INFO_ALONE,
            Some((AdminQuestion::ServerInfo, ..)) => SERVER_INFO,
            Some((AdminQuestion::Ready, _, since)) => eager(now.saturating_sub(since)),
            None => EAGER,
        }
    }
}

/// The pace of data-path questions.
#[derive(Debug)]
pub struct DataPathPace {
    /// Envoy is our child: we hear of its end.
    child: bool,
    /// Waited for since, in which life.
    pending: Option<((u32, bool), Duration)>,
}

impl DataPathPace {
    /// `child`: Envoy is ours, and we hear of its end.
    pub fn new(child: bool) -> Self {
        Self { child, pending: None }
    }

    /// The deadline of every question.
    pub fn deadline(&self) -> Duration {
        DATA_PATH_DEADLINE
    }

    /// The pause after a question. `pending`: readiness waits for the data path of this `life` of Envoy. `failure`: it had no
    /// answer; `failing`: none that is good enough.
    pub fn pause(
        &mut self,
        pending: bool,
        life: (u32, bool),
        failure: Option<Failure>,
        failing: bool,
        now: Duration,
    ) -> Duration {
        if !pending {
            self.pending = None;
            return match failure {
                _ if self.child && failing => DATA_PATH_FAILED,
                _ if self.child => DATA_PATH_MET,
                Some(Failure::Refused) => REFUSED,
                _ => DATA_PATH_WATCH,
            };
        }
        let since = match self.pending {
            Some((of, since)) if of == life => since,
            _ => now,
        };
        self.pending = Some((life, since));
        eager(now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests;
