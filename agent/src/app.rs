//! Wiring: `bootstrap` puts its files in place, `run` builds the parts and ends with them.

use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::address::{Endpoint, HttpUrl};
use crate::args::LogFormat;
use crate::config::{BootstrapConfig, RunConfig};
use crate::exit::{self, Failure};
use crate::http_server::{self, Limits};
use crate::readiness::Policy;
use crate::readiness::poller::{self, Observer, Questions};
use crate::readiness::server::ReadinessServer;
use crate::shutdown::Shutdown;
use crate::state_dir;
use crate::{machine, output};

/// Makes the state directory and writes the filter to it where the bootstrap names them, then the bootstrap to stdout or its file.
pub fn bootstrap(config: BootstrapConfig) -> Result<(), Failure> {
    let BootstrapConfig { bootstrap, state_dir, make_state_dir, write_filter, output, warnings } = config;
    for warning in &warnings {
        exit::stderr_line(warning);
    }
    let made = match (write_filter, make_state_dir) {
        (true, _) => state_dir::write_filter(&state_dir),
        (false, true) => state_dir::make(&state_dir),
        (false, false) => Ok(()),
    };
    made.map_err(|error| Failure::CannotWrite(error.to_string()))?;
    let text = bootstrap.render();
    match output {
        Some(file) => output::write(&file, text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("--output = {}: {error}", file.display()))),
        None => output::write_stdout(text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("stdout: {error}"))),
    }
}

/// Watches Envoy and answers 15021 until SIGTERM or SIGINT.
pub fn run(config: RunConfig) -> Result<(), Failure> {
    let RunConfig {
        ready_address,
        admin,
        data_path,
        dynamic,
        admin_timeout,
        log_level,
        log_format,
        unknown_twins,
    } = config;
    let log = tracing_subscriber::fmt().with_max_level(log_level).with_writer(io::stderr).with_ansi(false);
    match log_format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
    if let Some(names) = unknown_twins {
        warn!(names, "no such settings");
    }
    info!(%ready_address, %admin, ?data_path, ?dynamic, ?admin_timeout, "configuration");

    let questions = Questions {
        admin: HttpUrl {
            endpoint: Endpoint::from(&admin),
            authority: "localhost".to_owned(),
            path: String::new(),
        },
        admin_timeout,
        data_path,
    };
    let policy = Policy { dynamic, data_path: questions.data_path.is_some() };
    runtime()?.block_on(async {
        let mut shutdown = Shutdown::new().map_err(|error| Failure::Machine(format!("signals: {error}")))?;
        let listener = http_server::bind(ready_address).map_err(|error| {
            Failure::Machine(format!(
                "port {} ({ready_address}): {error}; GET /healthz/ready needs it, another one is --ready-address",
                ready_address.port()
            ))
        })?;
        let observer = Arc::new(Observer::new(policy));
        let server = ReadinessServer::new(observer.clone());
        let closing = CancellationToken::new();
        let limits = Limits::new(machine::descriptor_limit());
        let serving = http_server::serve(listener, limits, closing.clone(), move |call| server.clone().answer(call));
        let mut serving = tokio::spawn(serving);
        let polled = observer.clone();
        let mut polling = tokio::spawn(async move { poller::run(&polled, questions).await });
        let ended = tokio::select! {
            (signal, _) = shutdown.signalled() => {
                info!(signal, "terminating");
                Ok(())
            }
            failure = unasked("poller", &mut polling) => Err(failure),
            failure = unasked("readiness server", &mut serving) => Err(failure),
        };
        observer.terminate();
        closing.cancel();
        if ended.is_ok() {
            serving.await.map_err(|error| broken("readiness server", Some(error)))?;
        }
        ended
    })
}

/// Waits for a part that is there as long as the agent; when it ends, so does the agent, since nobody else would notice.
async fn unasked(part: &str, task: &mut JoinHandle<()>) -> Failure {
    broken(part, task.await.err())
}

fn broken(part: &str, error: Option<JoinError>) -> Failure {
    let how = error.map_or_else(|| "ended by itself".to_owned(), |error| error.to_string());
    Failure::Broken(format!(
        "{part}: {how}; that is a mistake in app-health-agent, which ends now to be started again"
    ))
}

/// One thread is enough for what the agent does.
pub fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}

#[cfg(test)]
mod tests;
