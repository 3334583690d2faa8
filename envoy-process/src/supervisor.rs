//! The main loop of `run`: it starts and restarts Envoy, handles signals and the commands of the
//! local server, and performs the drain. [`Drain`] and [`RestartPolicy`] decide what to do and when.

mod drain_requests;
mod envoy_state;
mod lifecycle;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use serving::log_limiter::LogLimiter;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::drain::{Drain, DrainSettings, Step};
use crate::envoy_files::{DebugInfo, Fallback};
use crate::process::EnvoyCommand;
use crate::restart_policy::{RestartMode, RestartPolicy};
use crate::signals::{Signalled, Signals};
use address::HttpUrl;
use agent_output::exit::Failure;
use agent_state::awaited_pids::AwaitedPids;
use agent_state::metrics::ExitCause;
use agent_state::state::AgentState;
use drain_requests::{DrainRequests, DrainResponse};
use envoy_state::{EnvoyState, Event};
use readiness::listeners::DrainScope;
use readiness::listeners::{self, Listener};
use readiness::{Observation, Readiness};

/// Time for Envoy to exit between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub enum LocalCommand {
    /// Drain Envoy and keep running.
    Drain,
    /// Reverse a drain. The response is false if the agent is shutting down.
    Undrain(oneshot::Sender<bool>),
    /// Exit without a drain.
    Quit,
}

pub struct Inputs {
    pub state: Arc<AgentState>,
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    pub drain: DrainSettings,
    /// `None` for an external Envoy, which is drained but never started or stopped.
    pub envoy: Option<EnvoyStart>,
    /// True if it is a failure to exit before Envoy was ready for the first time.
    pub must_become_ready: bool,
    /// Where to announce that other files were written for Envoy.
    pub debug_info: watch::Sender<DebugInfo>,
    pub commands: mpsc::Receiver<LocalCommand>,
    pub signals: Signals,
    /// Child processes that other tasks wait for.
    pub awaited_pids: AwaitedPids,
}

/// Settings for the start of Envoy.
pub struct EnvoyStart {
    pub command: EnvoyCommand,
    pub restart: RestartMode,
    /// Time without any response after which Envoy is killed; `None` disables that.
    pub hang_limit: Option<Duration>,
    pub fallback: Option<Fallback>,
}

/// Why the supervisor has ended without a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The agent terminates.
    Terminated,
    /// The agent is restarted, and the external Envoy continues.
    Restarted,
}

/// Starts Envoy and returns when it has exited, either on request or with a failure. `broken` is
/// the failure of another task, upon which Envoy is stopped gracefully.
pub async fn run(inputs: Inputs, broken: impl Future<Output = Failure>) -> Result<Ended, Failure> {
    let Inputs { state, admin, drain, envoy, must_become_ready, debug_info, commands, signals, awaited_pids } =
        inputs;
    let (command, restart, hang_limit, fallback) = match envoy {
        Some(EnvoyStart { command, restart, hang_limit, fallback }) => {
            (Some(command), restart, hang_limit, fallback)
        }
        None => (None, RestartMode::Never, None, None),
    };
    let mut supervisor = Supervisor {
        state,
        admin,
        scope: drain.scope,
        listeners: None,
        drain: Drain::new(drain),
        command,
        restarts: RestartPolicy::new(restart),
        hang_limit,
        fallback,
        must_become_ready,
        debug_info,
        envoy: EnvoyState::Stopped,
        is_hung: false,
        is_replaced: false,
        was_started: false,
        must_reopen_logs: false,
        commands,
        signals,
        awaited_pids,
        hang_ups: LogLimiter::default(),
    };
    let stop = supervisor.event_loop(broken).await;
    if matches!(stop, Ok(Stop::Restart)) {
        return Ok(Ended::Restarted);
    }
    supervisor.state.apply(Observation::Terminating);
    let grace = if matches!(stop, Ok(Stop::Immediate)) { Duration::ZERO } else { STOP_GRACE };
    supervisor.stop_envoy(grace).await;
    stop.map(|_| Ended::Terminated)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Send SIGTERM and wait before SIGKILL.
    Graceful,
    /// Send SIGKILL immediately, because a second signal was received.
    Immediate,
    /// Leave the external Envoy as it is: it has no request that would reverse a drain.
    Restart,
}

struct Supervisor {
    state: Arc<AgentState>,
    admin: HttpUrl,
    scope: DrainScope,
    /// The listeners at the first readiness, if they are known.
    listeners: Option<Vec<Listener>>,
    drain: Drain,
    command: Option<EnvoyCommand>,
    restarts: RestartPolicy,
    hang_limit: Option<Duration>,
    fallback: Option<Fallback>,
    must_become_ready: bool,
    debug_info: watch::Sender<DebugInfo>,
    envoy: EnvoyState,
    /// True if the running Envoy was killed because it hung.
    is_hung: bool,
    /// True if the running Envoy was stopped to reverse its drain.
    is_replaced: bool,
    was_started: bool,
    /// True if SIGUSR1 was received and not passed on yet.
    must_reopen_logs: bool,
    commands: mpsc::Receiver<LocalCommand>,
    signals: Signals,
    awaited_pids: AwaitedPids,
    hang_ups: LogLimiter,
}

impl Supervisor {
    async fn event_loop(&mut self, broken: impl Future<Output = Failure>) -> Result<Stop, Failure> {
        let mut broken = std::pin::pin!(broken);
        let mut requests = DrainRequests::default();
        let state = self.state.clone();
        let mut first_ready = std::pin::pin!(state.wait_until(Readiness::was_ready));
        let mut is_ready_known = false;
        let mut start_requests = DrainRequests::default();
        self.begin()?;
        loop {
            let now = self.state.now();
            let step = self.drain.next(now);
            let mut wake = self.envoy.due();
            match step {
                Step::End => return Ok(Stop::Graceful),
                Step::WaitUntil(until) => wake = Some(wake.map_or(until, |at| at.min(until))),
                Step::SendDrain => requests.drain(&self.admin, self.scope, &self.listeners),
                Step::CountConnections => requests.count_connections(&self.admin, self.state.drain_plan()),
                Step::Idle => {}
            }
            tokio::select! {
                failure = &mut broken => return Err(failure),
                signal = self.signals.next() => {
                    if let Some(end) = self.on_signal(signal)? {
                        return Ok(end);
                    }
                }
                Some(command) = self.commands.recv() => match command {
                    LocalCommand::Drain => {
                        self.announce_drain("POST /drain");
                        self.drain.begin(self.state.now());
                    }
                    LocalCommand::Undrain(response) => {
                        requests = DrainRequests::default();
                        // Sending fails if the client has disconnected.
                        let _ = response.send(self.undrain());
                    }
                    LocalCommand::Quit => return Ok(Stop::Graceful),
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
                response = requests.recv() => self.on_response(response),
                () = &mut first_ready, if !is_ready_known => {
                    is_ready_known = true;
                    start_requests.query_listeners(&self.admin);
                }
                response = start_requests.recv() => self.on_response(response),
                () = until_admin_responds(&self.state), if self.must_reopen_logs => self.reopen_logs(),
                () = until_hung(&self.state, self.hang_limit), if !self.is_hung => self.kill_hung(),
                () = until(wake, now) => self.start_if_due()?,
            }
        }
    }

    fn on_signal(&mut self, signal: Signalled) -> Result<Option<Stop>, Failure> {
        match signal {
            Signalled::Restart if self.command.is_none() && !self.drain.is_shutting_down() => {
                info!("agent is restarted, its endpoint and Envoy stay");
                return Ok(Some(Stop::Restart));
            }
            // An Envoy that the agent started ends with it.
            Signalled::Restart => return self.on_signal(Signalled::Terminate(Signal::SIGUSR2)),
            Signalled::Terminate(signal) if self.drain.is_shutting_down() => {
                warn!(signal = signal.as_str(), "second signal received, aborting drain");
                return Ok(Some(Stop::Immediate));
            }
            Signalled::Terminate(signal) if !self.state.with_readiness(Readiness::was_ready) => {
                info!(
                    signal = signal.as_str(),
                    "termination requested while no ready Envoy runs, skipping drain"
                );
                if self.must_become_ready && !self.state.with_readiness(Readiness::was_ever_ready) {
                    let pending = String::from_utf8_lossy(&self.state.subscribe().borrow().body)
                        .trim()
                        .replace('\n', ", ");
                    return Err(never_ready(signal, &pending));
                }
                return Ok(Some(Stop::Graceful));
            }
            Signalled::Terminate(signal) if matches!(self.envoy, EnvoyState::Validating(_)) => {
                info!(signal = signal.as_str(), "termination requested during a validation, skipping drain");
                return Ok(Some(Stop::Graceful));
            }
            Signalled::Terminate(signal) => {
                self.announce_drain(signal.as_str());
                self.drain.begin_shutdown(self.state.now());
            }
            Signalled::ReopenLogs => self.must_reopen_logs = true,
            Signalled::HangUp => {
                if let Some(times) = self.hang_ups.record(Instant::now()) {
                    info!(times, "SIGHUP ignored: the configuration is read only at startup");
                }
            }
            Signalled::Child => self.reap(),
        }
        Ok(None)
    }

    /// Before Envoy's admin interface has responded, Envoy may not handle SIGUSR1 yet, and the signal would
    /// terminate it.
    fn reopen_logs(&mut self) {
        self.must_reopen_logs = false;
        if let EnvoyState::Running(process, _) = &self.envoy {
            process.signal(Signal::SIGUSR1);
        }
    }

    fn announce_drain(&self, reason: &str) {
        info!(reason, "drain started");
        self.state.apply(Observation::Draining);
    }

    /// Returns false if the agent is shutting down. Envoy has no request that reverses a drain, so an
    /// Envoy that the agent started is replaced.
    fn undrain(&mut self) -> bool {
        let Some(was_draining) = self.drain.cancel() else { return false };
        if !was_draining {
            return true;
        }
        info!("drain reversed");
        self.state.apply(Observation::Undrained);
        match &self.envoy {
            EnvoyState::Running(process, _) => {
                self.is_replaced = true;
                process.signal(Signal::SIGTERM);
            }
            _ if self.command.is_none() => {
                warn!(
                    "an external Envoy keeps closing connections after each response until it is restarted"
                );
            }
            _ => {}
        }
        true
    }

    fn on_response(&mut self, response: DrainResponse) {
        match response {
            DrainResponse::Listeners(listeners) => {
                if listeners.is_none() && self.scope == DrainScope::Inbound {
                    warn!("{}", listeners::UNKNOWN_AT_START);
                }
                for warning in listeners.iter().flat_map(|known| listeners::warnings(self.scope, known)) {
                    warn!("{warning}");
                }
                self.listeners = listeners;
            }
            DrainResponse::DrainSent { plan, are_listeners_known, is_accepted } => {
                if !is_accepted {
                    warn!("envoy admin did not accept the drain request");
                } else if !are_listeners_known && self.scope == DrainScope::Inbound {
                    warn!("{}", listeners::UNKNOWN_AT_DRAIN);
                }
                self.state.set_drain_plan(plan);
                self.drain.on_drain_response(is_accepted);
            }
            DrainResponse::Connections(connections) => {
                info!(?connections, "application connections counted");
                self.drain.on_connection_count(connections, self.state.now());
            }
        }
    }

    async fn stop_envoy(&mut self, grace: Duration) {
        let EnvoyState::Running(process, _) = &mut self.envoy else { return };
        if let Some(reason) = envoy_state::stop(process, grace, &mut self.signals).await {
            self.state.envoy_exited(ExitCause::Requested);
            info!(status = %reason, "envoy exited");
        }
    }
}

/// Describes the end of an agent whose Envoy was never ready. It is a failure, because kubelet with
/// `restartPolicy: OnFailure` would not start a container again that exits with 0.
pub fn never_ready(signal: Signal, pending: &str) -> Failure {
    let number = u8::try_from(signal as i32).expect("signals have small numbers");
    Failure::Interrupted(format!("{signal} before Envoy was ready for the first time: {pending}"), number)
}

/// Waits until Envoy has been silent for `limit`.
async fn until_hung(state: &AgentState, limit: Option<Duration>) {
    match limit {
        Some(limit) => state.wait_for_silence(|silence| silence.is_hang(limit)).await,
        None => std::future::pending().await,
    }
}

async fn until_admin_responds(state: &AgentState) {
    state.wait_until(Readiness::has_admin_responded).await;
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
