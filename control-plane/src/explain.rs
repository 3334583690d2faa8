//! The command `explain`: reads a Pod or the Pods of a workload, and prints what is wrong with them.

mod api_reader;
mod pod;
mod workload;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::args::explain::ReportFormat;
use crate::config::ExplainConfig;
use crate::exit::stderr_line;
use crate::files::write_stdout;
use ::explain::Verdict;
use ::explain::object::Kind;
use ::explain::report::Report;
use ::explain::text;
use api_reader::ApiReader;
use pod::PodContext;
use serving::exit::Failure;
use serving::{runtime, tls};

/// Pause between two reports with `--watch`.
const INTERVAL: Duration = Duration::from_secs(2);

/// Prints the report once and returns the exit code of its verdict, or with `--watch` prints until
/// the process is stopped.
pub fn run(config: ExplainConfig) -> Result<u8, Failure> {
    tls::install_crypto()?;
    runtime::block_on(&mut Builder::new_current_thread(), print(config))
}

async fn print(config: ExplainConfig) -> Result<u8, Failure> {
    let client = client(&config).await?;
    let namespace = config.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let reader = ApiReader::new(client, &namespace, config.timeout);
    let mut last = None;
    loop {
        let now = Timestamp::now().to_string();
        match report(&reader, &config, &now).await {
            Ok(report) => {
                let state = report.state();
                if last.as_ref() != Some(&state) {
                    write_stdout(&shown(&report, &config, &now, last.is_some()))?;
                    last = Some(state);
                }
                if !config.watch {
                    return Ok(Verdict::exit_code(report.verdict));
                }
            }
            Err(failure) if config.watch && last.is_some() => stderr_line(&failure.to_string()),
            Err(failure) => return Err(failure),
        }
        sleep(INTERVAL).await;
    }
}

fn shown(report: &Report, config: &ExplainConfig, now: &str, follows: bool) -> String {
    let json = || serde_json::to_value(report).expect("a report can be written as JSON");
    match config.output {
        ReportFormat::Text if follows => format!("\n--- {now}\n{}", text::render(report, now)),
        ReportFormat::Text => text::render(report, now),
        ReportFormat::Json if config.watch => printable::json(&format!("{}\n", json())).into_owned(),
        ReportFormat::Json => printable::json(&format!("{:#}\n", json())).into_owned(),
    }
}

async fn report(reader: &ApiReader, config: &ExplainConfig, now: &str) -> Result<Report, Failure> {
    let object = config.object.clone();
    let context = PodContext { now, webhook: &config.webhook_configuration };
    match object.kind {
        Kind::Pod => {
            let situation = pod::read(reader, &context, &object.name).await?;
            Ok(Report::of_pod(object, &situation))
        }
        _ => Ok(Report::of_workload(&workload::read(reader, &context, object).await?)),
    }
}

/// Connects to the API server by the rules of kubectl.
async fn client(config: &ExplainConfig) -> Result<Client, Failure> {
    let options = KubeConfigOptions { context: config.context.clone(), ..KubeConfigOptions::default() };
    let found = match &config.kubeconfig {
        Some(file) => {
            let wrong = |error| Failure::CannotRead(format!("--kubeconfig = {}: {error}", file.display()));
            let kubeconfig = Kubeconfig::read_from(file).map_err(wrong)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| error.to_string())
        }
        None if config.context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| error.to_string())
        }
        None => Config::infer().await.map_err(|error| error.to_string()),
    };
    let mut found = found.map_err(|error| Failure::Unavailable(format!("no API server: {error}")))?;
    found.connect_timeout = Some(config.timeout);
    found.default_retry = false;
    Client::try_from(found).map_err(|error| Failure::Unavailable(format!("no API server: {error}")))
}
