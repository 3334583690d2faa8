//! The main loop of `run`: Envoy's lives one after another, signals, orders of the local port, and the drain. What to do when is
//! decided by values ([`Drain`], `Backoff`); here it is done.

mod backoff;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use super::admin;
use super::process::{Ended, EnvoyCommand, EnvoyProcess, reap_strangers};
use crate::address::HttpUrl;
use crate::args::EnvoyRestart;
use crate::drain::{Drain, Settings, Step};
use crate::exit::Failure;
use crate::readiness::poller::Observer;
use crate::readiness::{Observation, Ready};
use crate::signals::{Signalled, Signals};
use backoff::Backoff;

/// Of one question of a drain to the admin port.
const DRAIN_QUESTION: Duration = Duration::from_secs(1);
/// What Envoy gets between SIGTERM and SIGKILL.
const ENVOY_END: Duration = Duration::from_secs(3);
/// What the kernel gets to take it away after SIGKILL.
const ENVOY_KILLED: Duration = Duration::from_secs(1);

/// What the local port may order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Drain Envoy, and stay.
    Drain,
    /// End without a drain.
    Quit,
}

/// What the loop is made of.
pub struct Parts {
    /// Hears of starts, ends, drains.
    pub observer: Arc<Observer>,
    /// Envoy's admin port; the path does not matter.
    pub admin: HttpUrl,
    /// How Envoy is drained.
    pub drain: Settings,
    /// Absent: somebody else's Envoy, which is told to drain and nothing more.
    pub envoy: Option<(EnvoyCommand, EnvoyRestart)>,
    /// From the local port.
    pub orders: mpsc::Receiver<Order>,
    /// From the system.
    pub signals: Signals,
}

/// Starts Envoy and returns when it has ended: as asked, or with a reason. `broken` is another part's failure, which ends Envoy in
/// order.
pub async fn run(parts: Parts, broken: impl Future<Output = Failure>) -> Result<(), Failure> {
    let Parts { observer, admin, drain, envoy, orders, signals } = parts;
    let (command, restart) = match envoy {
        Some((command, restart)) => (Some(command), restart),
        None => (None, EnvoyRestart::Never),
    };
    let mut supervisor = Supervisor {
        observer,
        admin,
        path: drain.path(),
        drain: Drain::new(drain),
        command,
        restart,
        life: Life::None,
        backoff: Backoff::default(),
        orders,
        signals,
    };
    let ended = supervisor.watch(broken).await;
    supervisor.observer.tell(Observation::Terminating);
    let grace = if ended.as_ref().is_ok_and(|end| *end == End::Now) { Duration::ZERO } else { ENVOY_END };
    supervisor.end_envoy(grace).await;
    ended.map(|_| ())
}

/// How the loop ended, as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Envoy may end in order.
    InOrder,
    /// A second signal: at once.
    Now,
}

/// The Envoy of this moment.
enum Life {
    /// There is none, or it is somebody else's.
    None,
    Running(EnvoyProcess, Duration),
    /// The next one is started then.
    Next(Duration),
}

struct Supervisor {
    observer: Arc<Observer>,
    admin: HttpUrl,
    path: &'static str,
    drain: Drain,
    command: Option<EnvoyCommand>,
    restart: EnvoyRestart,
    life: Life,
    backoff: Backoff,
    orders: mpsc::Receiver<Order>,
    signals: Signals,
}

/// An answer to a drain's question.
enum Answer {
    Told(bool),
    Counted(Option<u64>),
}

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Supervisor {
    async fn watch(&mut self, broken: impl Future<Output = Failure>) -> Result<End, Failure> {
        let mut broken = std::pin::pin!(broken);
        let mut asking: Option<Asking> = None;
        self.start()?;
        loop {
            let now = self.observer.now();
            let step = self.drain.next(now);
            let mut wake = match self.life {
                Life::Next(at) => Some(at),
                _ => None,
            };
            match step {
                Step::End => return Ok(End::InOrder),
                Step::Wait(until) => wake = Some(wake.map_or(until, |at| at.min(until))),
                Step::Tell | Step::Count if asking.is_none() => asking = Some(self.ask(step)),
                Step::Tell | Step::Count | Step::Rest => {}
            }
            tokio::select! {
                failure = &mut broken => return Err(failure),
                signal = self.signals.next() => {
                    if let Some(end) = self.signalled(signal) {
                        return Ok(end);
                    }
                }
                Some(order) = self.orders.recv() => match order {
                    Order::Drain => {
                        self.announce_drain("POST /drain");
                        self.drain.begin(self.observer.now());
                    }
                    Order::Quit => return Ok(End::InOrder),
                },
                ended = ended(&mut self.life) => {
                    if let Some(end) = self.ended(ended).await? {
                        return Ok(end);
                    }
                }
                answer = answered(&mut asking) => {
                    asking = None;
                    self.answered(&answer);
                }
                () = until(wake, now) => self.start_if_due()?,
            }
        }
    }

    fn start(&mut self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let process = command.start().map_err(|error| {
            Failure::Machine(format!("cannot start Envoy, {}: {error}", command.binary.display()))
        })?;
        info!(pid = process.pid().as_raw(), binary = %command.binary.display(), "envoy started");
        self.observer.tell(Observation::Started);
        self.life = Life::Running(process, self.observer.now());
        Ok(())
    }

    fn start_if_due(&mut self) -> Result<(), Failure> {
        match self.life {
            Life::Next(at) if self.observer.now() >= at => self.start(),
            _ => Ok(()),
        }
    }

    /// `Some`: the loop is over.
    fn signalled(&mut self, signal: Signalled) -> Option<End> {
        match signal {
            Signalled::End(name) if self.drain.is_leaving() => {
                warn!(signal = name, "a second signal: the drain is cut short");
                return Some(End::Now);
            }
            Signalled::End(name) if !self.observer.look(Ready::was_ready) => {
                info!(signal = name, "terminating; envoy was not ready yet, so nothing is drained");
                return Some(End::InOrder);
            }
            Signalled::End(name) => {
                self.announce_drain(name);
                self.drain.leave(self.observer.now());
            }
            Signalled::ReopenLogs => {
                if let Life::Running(process, _) = &self.life {
                    process.signal(Signal::SIGUSR1);
                }
            }
            Signalled::HangUp => info!("SIGHUP is ignored: the configuration is read at the start alone"),
            Signalled::Child => self.reap(),
        }
        None
    }

    fn announce_drain(&self, why: &str) {
        info!(why, "draining");
        self.observer.tell(Observation::Draining);
    }

    fn reap(&self) {
        let own: Vec<_> = match &self.life {
            Life::Running(process, _) => vec![process.pid()],
            _ => Vec::new(),
        };
        reap_strangers(&own);
    }

    /// Envoy is gone. `Some`: that was to be expected.
    async fn ended(&mut self, ended: Ended) -> Result<Option<End>, Failure> {
        let lived = match std::mem::replace(&mut self.life, Life::None) {
            Life::Running(_, since) => self.observer.now().saturating_sub(since),
            _ => Duration::ZERO,
        };
        self.observer.tell(Observation::Exited);
        self.observer.metrics().envoy_ended(ended, self.drain.is_leaving());
        self.reap();
        if self.drain.is_leaving() {
            info!(%ended, "envoy ended during the drain");
            return Ok(Some(End::InOrder));
        }
        error!(%ended, seconds = lived.as_secs_f64(), "envoy ended unasked");
        if !self.observer.look(Ready::was_live)
            && let Some(command) = &self.command
        {
            let refusal = match command.validate() {
                Ok(validation) => {
                    let own = [validation.pid()];
                    tokio::select! {
                        refusal = validation.refusal() => refusal,
                        () = self.signals.end(|| reap_strangers(&own)) => return Ok(Some(End::InOrder)),
                    }
                }
                Err(_) => None,
            };
            self.reap();
            if let Some(words) = refusal {
                return Err(Failure::Usage(format!("Envoy refuses its configuration: {words}")));
            }
        }
        match self.restart {
            EnvoyRestart::Never => Err(Failure::Ended(format!("Envoy ended unasked, {ended}"))),
            EnvoyRestart::Always => {
                let pause = self.backoff.next(lived, backoff::random());
                info!(seconds = pause.as_secs_f64(), "envoy will be started again");
                self.observer.tell(Observation::Restarting);
                self.life = Life::Next(self.observer.now() + pause);
                Ok(None)
            }
        }
    }

    fn ask(&self, step: Step) -> Asking {
        let (admin, path) = (self.admin.clone(), self.path);
        match step {
            Step::Count => {
                Box::pin(
                    async move { Answer::Counted(admin::open_connections(&admin, DRAIN_QUESTION).await) },
                )
            }
            _ => Box::pin(async move { Answer::Told(admin::tell(&admin, path, DRAIN_QUESTION).await) }),
        }
    }

    fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Told(understood) => {
                if !understood {
                    warn!("envoy admin was told to drain the listeners, and did not answer");
                }
                self.drain.told(*understood);
            }
            Answer::Counted(connections) => {
                info!(?connections, "open connections of the application");
                self.drain.counted(*connections, self.observer.now());
            }
        }
    }

    async fn end_envoy(&mut self, grace: Duration) {
        let Life::Running(process, _) = &mut self.life else { return };
        if !grace.is_zero() {
            let own = [process.pid()];
            process.signal(Signal::SIGTERM);
            let ended = tokio::select! {
                ended = timeout(grace, process.ended()) => ended.ok(),
                () = self.signals.end(|| reap_strangers(&own)) => None,
            };
            if let Some(ended) = ended {
                self.observer.metrics().envoy_ended(ended, true);
                info!(%ended, "envoy ended");
                return;
            }
        }
        warn!("envoy is killed");
        process.signal(Signal::SIGKILL);
        let _ = timeout(ENVOY_KILLED, process.ended()).await;
    }
}

async fn ended(life: &mut Life) -> Ended {
    match life {
        Life::Running(process, _) => process.ended().await,
        _ => std::future::pending().await,
    }
}

async fn answered(asking: &mut Option<Asking>) -> Answer {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
