//! The main loop of `run`: it starts and restarts Envoy, handles signals and the commands of the
//! admin server, and performs the drain. [`Drain`] and [`Backoff`] decide what to do and when.

mod drain_requests;
mod envoy_state;
mod lifecycle;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use pacing::Backoff;
use serving::log_limiter::LogLimiter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::address::HttpUrl;
use crate::args::EnvoyRestart;
use crate::awaited_pids::AwaitedPids;
use crate::drain::{Drain, DrainSettings, Step};
use crate::envoy::process::EnvoyCommand;
use crate::exit::Failure;
use crate::readiness::{Observation, Readiness};
use crate::signals::{Signalled, Signals};
use crate::state::AgentState;
use drain_requests::{DrainRequests, DrainResponse};
use envoy_state::{EnvoyState, Event};

/// Time for Envoy to exit between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// The first and the largest upper bound of the pauses between restarts of Envoy. An Envoy that ran
/// for the largest one resets them.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminCommand {
    /// Drain Envoy and keep running.
    Drain,
    /// Exit without a drain.
    Quit,
}

pub struct Inputs {
    pub state: Arc<AgentState>,
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    pub drain: DrainSettings,
    /// `None` for an external Envoy, which is drained but never started or stopped.
    pub envoy: Option<(EnvoyCommand, EnvoyRestart)>,
    pub commands: mpsc::Receiver<AdminCommand>,
    pub signals: Signals,
    /// Child processes that other tasks wait for.
    pub awaited_pids: AwaitedPids,
}

/// Starts Envoy and returns when it has exited, either on request or with a failure. `broken` is
/// the failure of another task, upon which Envoy is stopped gracefully.
pub async fn run(inputs: Inputs, broken: impl Future<Output = Failure>) -> Result<(), Failure> {
    let Inputs { state, admin, drain, envoy, commands, signals, awaited_pids } = inputs;
    let (command, restart) = match envoy {
        Some((command, restart)) => (Some(command), restart),
        None => (None, EnvoyRestart::Never),
    };
    let mut supervisor = Supervisor {
        state,
        admin,
        path: drain.path(),
        drain: Drain::new(drain),
        command,
        restart,
        envoy: EnvoyState::Stopped,
        was_started: false,
        backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
        commands,
        signals,
        awaited_pids,
        hang_ups: LogLimiter::default(),
    };
    let stop = supervisor.event_loop(broken).await;
    supervisor.state.apply(Observation::Terminating);
    let grace =
        if stop.as_ref().is_ok_and(|stop| *stop == Stop::Immediate) { Duration::ZERO } else { STOP_GRACE };
    supervisor.stop_envoy(grace).await;
    stop.map(|_| ())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Send SIGTERM and wait before SIGKILL.
    Graceful,
    /// Send SIGKILL immediately, because a second signal was received.
    Immediate,
}

struct Supervisor {
    state: Arc<AgentState>,
    admin: HttpUrl,
    path: &'static str,
    drain: Drain,
    command: Option<EnvoyCommand>,
    restart: EnvoyRestart,
    envoy: EnvoyState,
    was_started: bool,
    backoff: Backoff,
    commands: mpsc::Receiver<AdminCommand>,
    signals: Signals,
    awaited_pids: AwaitedPids,
    hang_ups: LogLimiter,
}

impl Supervisor {
    async fn event_loop(&mut self, broken: impl Future<Output = Failure>) -> Result<Stop, Failure> {
        let mut broken = std::pin::pin!(broken);
        let mut requests = DrainRequests::default();
        self.begin()?;
        loop {
            let now = self.state.now();
            let step = self.drain.next(now);
            let mut wake = self.envoy.due();
            match step {
                Step::End => return Ok(Stop::Graceful),
                Step::WaitUntil(until) => wake = Some(wake.map_or(until, |at| at.min(until))),
                Step::SendDrain | Step::CountConnections => requests.send(step, &self.admin, self.path),
                Step::Idle => {}
            }
            tokio::select! {
                failure = &mut broken => return Err(failure),
                signal = self.signals.next() => {
                    if let Some(end) = self.on_signal(signal) {
                        return Ok(end);
                    }
                }
                Some(command) = self.commands.recv() => match command {
                    AdminCommand::Drain => {
                        self.announce_drain("POST /drain");
                        self.drain.begin(self.state.now());
                    }
                    AdminCommand::Quit => return Ok(Stop::Graceful),
                },
                event = self.envoy.event() => {
                    let end = match event {
                        Event::Exited(reason) => self.on_exit(reason)?,
                        Event::Validated(error) => self.on_validated(error)?,
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
                response = requests.recv() => self.on_response(&response),
                () = until(wake, now) => self.start_if_due()?,
            }
        }
    }

    fn on_signal(&mut self, signal: Signalled) -> Option<Stop> {
        match signal {
            Signalled::Terminate(name) if self.drain.is_shutting_down() => {
                warn!(signal = name, "second signal received, aborting drain");
                return Some(Stop::Immediate);
            }
            Signalled::Terminate(name)
                if !self.state.with_readiness(Readiness::was_ready)
                    || matches!(self.envoy, EnvoyState::Validating(_)) =>
            {
                info!(signal = name, "termination requested before Envoy was ready, skipping drain");
                return Some(Stop::Graceful);
            }
            Signalled::Terminate(name) => {
                self.announce_drain(name);
                self.drain.begin_shutdown(self.state.now());
            }
            Signalled::ReopenLogs => {
                if let EnvoyState::Running(process, _) = &self.envoy {
                    process.signal(Signal::SIGUSR1);
                }
            }
            Signalled::HangUp => {
                if let Some(times) = self.hang_ups.record(Instant::now()) {
                    info!(times, "SIGHUP ignored: the configuration is read only at startup");
                }
            }
            Signalled::Child => self.reap(),
        }
        None
    }

    fn announce_drain(&self, reason: &str) {
        info!(reason, "drain started");
        self.state.apply(Observation::Draining);
    }

    fn on_response(&mut self, response: &DrainResponse) {
        match response {
            DrainResponse::DrainSent(accepted) => {
                if !accepted {
                    warn!("envoy admin did not accept the drain request");
                }
                self.drain.on_drain_response(*accepted);
            }
            DrainResponse::Connections(connections) => {
                info!(?connections, "application connections counted");
                self.drain.on_connection_count(*connections, self.state.now());
            }
        }
    }

    async fn stop_envoy(&mut self, grace: Duration) {
        let EnvoyState::Running(process, _) = &mut self.envoy else { return };
        if let Some(reason) = envoy_state::stop(process, grace, &mut self.signals).await {
            self.state.metrics().envoy_exited(reason, true);
            info!(status = %reason, "envoy exited");
        }
    }
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
