//! The main loop of `run`: it starts and restarts Envoy, handles signals and the commands of the
//! admin server, and performs the drain. [`Drain`] and [`Backoff`] decide what to do and when.

mod drain_requests;
mod envoy_state;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use pacing::Backoff;
use serving::log_limiter::LogLimiter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use crate::address::HttpUrl;
use crate::args::EnvoyRestart;
use crate::awaited_pids::AwaitedPids;
use crate::drain::{Drain, DrainSettings, Step};
use crate::envoy::process::{EnvoyCommand, ExitReason, reap_orphans};
use crate::exit::Failure;
use crate::random;
use crate::readiness::{Observation, Readiness};
use crate::signals::{Signalled, Signals};
use crate::state::AgentState;
use drain_requests::{DrainRequests, DrainResponse};
use envoy_state::{AfterValidation, EnvoyState, Event, PendingValidation};

/// Time for Envoy to exit between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// The first and the largest upper bound of the pauses between restarts of Envoy. An Envoy that ran
/// for the largest one resets them.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Command of the admin server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminCommand {
    /// Drain Envoy and keep running.
    Drain,
    /// Exit without a drain.
    Quit,
}

/// Inputs of the supervisor.
pub struct Inputs {
    /// Receives starts, exits and drains.
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

/// How Envoy is stopped after the loop ended on request.
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
                answer = requests.recv() => self.on_response(&answer),
                () = until(wake, now) => self.start_if_due()?,
            }
        }
    }

    /// Starts Envoy, after a validation of its configuration if required.
    fn begin(&mut self) -> Result<(), Failure> {
        let is_validated = self.command.as_ref().is_some_and(|command| command.validate_first);
        if is_validated && self.validate(AfterValidation::Start) { Ok(()) } else { self.start() }
    }

    /// Returns false if the validation cannot be started.
    fn validate(&mut self, then: AfterValidation) -> bool {
        let envoy = self.command.as_ref().and_then(|command| EnvoyState::validate(command, then));
        let is_validated = envoy.is_some();
        self.envoy = envoy.unwrap_or(EnvoyState::Stopped);
        is_validated
    }

    fn start(&mut self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let process = match command.start() {
            Ok(process) => process,
            Err(error) => {
                let binary = command.binary.display();
                let failure = Failure::Os(format!("cannot start Envoy {binary}: {error}"));
                return self.not_started(failure);
            }
        };
        info!(pid = process.pid().as_raw(), binary = %command.binary.display(), "envoy started");
        self.was_started = true;
        self.state.apply(Observation::Started);
        self.envoy = EnvoyState::Running(process, self.state.now());
        Ok(())
    }

    fn start_if_due(&mut self) -> Result<(), Failure> {
        let is_due = self.envoy.due().is_some_and(|at| self.state.now() >= at);
        if is_due { self.begin() } else { Ok(()) }
    }

    /// Handles a failure to start Envoy. The first start must succeed; a later failure may be
    /// temporary, such as a lack of file descriptors.
    fn not_started(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.was_started {
            return Err(failure);
        }
        error!("{failure}");
        self.start_later(Duration::ZERO);
        Ok(())
    }

    fn start_later(&mut self, run_time: Duration) {
        self.backoff.reset_after(run_time);
        let pause = self.backoff.next_with_jitter(Duration::ZERO, random::generator().f64());
        info!(seconds = pause.as_secs_f64(), "envoy restart scheduled");
        self.state.apply(Observation::Restarting);
        self.envoy = EnvoyState::Restarting(self.state.now() + pause);
    }

    /// Handles a signal; `Some` ends the loop.
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

    fn reap(&self) {
        reap_orphans(&[self.envoy.pids(), self.awaited_pids.pids()].concat());
    }

    /// Handles the exit of Envoy, or of the script that started it. `Some` means that the exit was
    /// expected.
    fn on_exit(&mut self, reason: ExitReason) -> Result<Option<Stop>, Failure> {
        let run_time = match std::mem::replace(&mut self.envoy, EnvoyState::Stopped) {
            EnvoyState::Running(process, since) => {
                // An Envoy that a script started would otherwise keep the ports, next to its
                // successor.
                process.signal(Signal::SIGKILL);
                self.state.now().saturating_sub(since)
            }
            _ => Duration::ZERO,
        };
        self.state.apply(Observation::Exited);
        self.state.metrics().envoy_exited(reason, self.drain.is_shutting_down());
        self.reap();
        if self.drain.is_shutting_down() {
            info!(status = %reason, "envoy exited during the drain");
            return Ok(Some(Stop::Graceful));
        }
        error!(status = %reason, seconds = run_time.as_secs_f64(), "envoy exited unexpectedly");
        let is_validated = self.command.as_ref().is_some_and(|command| command.validate_first);
        let was_live = self.state.with_readiness(Readiness::was_live);
        if !was_live && !is_validated && self.validate(AfterValidation::HandleExit(reason, run_time)) {
            return Ok(None);
        }
        self.on_unexpected_exit(reason, run_time)
    }

    /// Handles the end of a validation; without a result the configuration counts as valid.
    fn on_validated(&mut self, error: Option<String>) -> Result<Option<Stop>, Failure> {
        let judged = std::mem::replace(&mut self.envoy, EnvoyState::Stopped);
        self.reap();
        let refused = |words| Failure::Usage(format!("Envoy rejected its configuration: {words}"));
        match (judged, error) {
            (
                EnvoyState::Validating(PendingValidation {
                    then: AfterValidation::HandleExit(reason, run_time),
                    ..
                }),
                None,
            ) => self.on_unexpected_exit(reason, run_time),
            (
                EnvoyState::Validating(PendingValidation { then: AfterValidation::HandleExit(..), .. }),
                Some(words),
            ) => Err(refused(words)),
            (_, Some(words)) => self.not_started(refused(words)).map(|()| None),
            (_, None) => self.start().map(|()| None),
        }
    }

    /// Handles an unexpected exit of Envoy.
    fn on_unexpected_exit(
        &mut self,
        reason: ExitReason,
        run_time: Duration,
    ) -> Result<Option<Stop>, Failure> {
        match self.restart {
            EnvoyRestart::Never => Err(Failure::Software(format!("Envoy exited unexpectedly, {reason}"))),
            EnvoyRestart::Always => {
                self.start_later(run_time);
                Ok(None)
            }
        }
    }

    fn on_response(&mut self, answer: &DrainResponse) {
        match answer {
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
