//! Wiring: `bootstrap` puts its files in place, `run` builds the parts and ends with them.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::address::{Endpoint, HttpUrl};
use crate::args::LogFormat;
use crate::config::{BootstrapConfig, RunConfig};
use crate::exit::{self, Failure};
use crate::http_server::{self, Limits};
use crate::machine;
use crate::readiness::Policy;
use crate::readiness::poller::{self, Observer, Questions};
use crate::readiness::server::ReadinessServer;
use crate::shutdown::Shutdown;
use crate::state_dir;

/// Writes the filter if it goes to the state directory, then the bootstrap to stdout or its file.
pub fn bootstrap(config: BootstrapConfig) -> Result<(), Failure> {
    let BootstrapConfig { bootstrap, state_dir, write_filter, output, warnings } = config;
    for warning in &warnings {
        exit::stderr_line(warning);
    }
    if write_filter {
        state_dir::write_filter(&state_dir).map_err(|error| Failure::CannotWrite(error.to_string()))?;
    }
    let text = bootstrap.render();
    match output {
        Some(file) => state_dir::write(&file, text.as_bytes())
            .map_err(|error| Failure::CannotWrite(format!("--output = {}: {error}", file.display()))),
        None => write_stdout(&text).map_err(|error| Failure::CannotWrite(format!("stdout: {error}"))),
    }
}

fn write_stdout(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
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
        let serving = tokio::spawn(serving);
        let polling = async {
            poller::run(&observer, questions).await;
        };
        tokio::select! {
            () = polling => {}
            (signal, _) = shutdown.signalled() => info!(signal, "terminating"),
        }
        observer.terminate();
        closing.cancel();
        serving.await.map_err(|error| Failure::Machine(format!("readiness server: {error}")))
    })
}

/// One thread is enough for what the agent does.
pub fn runtime() -> Result<Runtime, Failure> {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Machine(format!("cannot start: {error}")))
}
