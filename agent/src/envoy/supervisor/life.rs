//! The Envoy of this moment: what it is, what comes of it, and how it is ended.

use std::pin::Pin;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::envoy::process::{Ended, EnvoyCommand, EnvoyProcess, reap_strangers};
use crate::envoy::question::Validation;
use crate::signals::Signals;

/// What the kernel gets to take Envoy away after SIGKILL.
const KILLED: Duration = Duration::from_secs(1);
/// Between two looks at what a script that has ended left in its process group.
const GROUP: Duration = Duration::from_millis(20);

/// The Envoy of this moment.
pub(super) enum Life {
    /// There is none, or it is somebody else's.
    None,
    /// Since when it runs.
    Running(EnvoyProcess, Duration),
    /// Another one judges the configuration.
    Judged(Judging),
    /// The next one is started then.
    Next(Duration),
}

/// An Envoy that judges the configuration.
pub(super) struct Judging {
    pid: Pid,
    refusal: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    /// What it was started for.
    pub(super) then: Then,
}

/// What follows if the configuration is not refused.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    /// An Envoy's start.
    Start,
    /// Its Envoy has ended, so that something else was wrong. And how long it lived.
    Over(Ended, Duration),
}

/// What an Envoy's life comes to.
pub(super) enum Event {
    /// It has ended.
    Ended(Ended),
    /// Why the configuration is refused, if it is.
    Judged(Option<String>),
}

impl Life {
    /// An Envoy judges the configuration of `command`; `None`: nobody can be started who would.
    pub(super) fn judged(command: &EnvoyCommand, then: Then) -> Option<Self> {
        let validation = Validation::start(command).ok()?;
        Some(Self::Judged(Judging { pid: validation.pid(), refusal: Box::pin(validation.refusal()), then }))
    }

    /// The processes that are waited for here.
    pub(super) fn pids(&self) -> Vec<Pid> {
        match self {
            Self::Running(process, _) => vec![process.pid()],
            Self::Judged(judging) => vec![judging.pid],
            Self::None | Self::Next(_) => Vec::new(),
        }
    }

    /// When the next one is to be started.
    pub(super) fn due(&self) -> Option<Duration> {
        match self {
            Self::Next(at) => Some(*at),
            _ => None,
        }
    }

    /// Returns when it has come to something; may be dropped and called again.
    pub(super) async fn event(&mut self) -> Event {
        match self {
            Self::Running(process, _) => Event::Ended(process.ended().await),
            Self::Judged(judging) => Event::Judged(judging.refusal.as_mut().await),
            Self::None | Self::Next(_) => std::future::pending().await,
        }
    }
}

/// Ends an Envoy: SIGTERM, and SIGKILL after `grace`, or at once if a signal asks for that. `None`: it was killed.
pub(super) async fn end(process: &mut EnvoyProcess, grace: Duration, signals: &mut Signals) -> Option<Ended> {
    if !grace.is_zero() {
        let own = [process.pid()];
        process.signal(Signal::SIGTERM);
        let ended = tokio::select! {
            ended = timeout(grace, whole_group_ended(process)) => ended.ok(),
            () = signals.end(|| reap_strangers(&own)) => None,
        };
        if ended.is_some() {
            return ended;
        }
    }
    warn!("envoy is killed");
    process.signal(Signal::SIGKILL);
    let _ = timeout(KILLED, process.ended()).await;
    None
}

/// Returns when it has ended, and what it had started too.
async fn whole_group_ended(process: &mut EnvoyProcess) -> Ended {
    let ended = process.ended().await;
    while process.has_group() {
        sleep(GROUP).await;
        reap_strangers(&[]);
    }
    ended
}
