//! The configuration of `run` for display, without header values, queries and Envoy's own arguments,
//! which may contain secrets.

use crate::config::RunConfig;
use address::without_query;
use agent_server::page::Configuration;
use envoy_process::config_source::EnvoyConfigSource;
use envoy_process::restart_policy::RestartMode;

/// Returns the settings that explain what the page shows.
pub(super) fn rows(config: &RunConfig) -> Configuration {
    let mut rows = Vec::new();
    let mut add = |name, value: String| rows.push((name, value));
    match &config.envoy {
        None => add("Envoy", "started by an external process".to_owned()),
        Some(envoy) => {
            add("Envoy", envoy.binary.display().to_string());
            add(
                "Envoy's configuration",
                match &envoy.files {
                    EnvoyConfigSource::Rendered(_) => "rendered".to_owned(),
                    EnvoyConfigSource::Merged(file, _) => format!("rendered, merged with {}", file.display()),
                    EnvoyConfigSource::Given(file) => file.display().to_string(),
                },
            );
            let workers = match envoy.concurrency {
                0 => "one for each processor".to_owned(),
                workers => workers.to_string(),
            };
            add("worker threads", workers);
            add(
                "after an exit of Envoy",
                match envoy.restart {
                    RestartMode::Never => "the agent exits".to_owned(),
                    RestartMode::Always => "Envoy is restarted".to_owned(),
                    RestartMode::Limited { limit, window } => {
                        format!("Envoy is restarted, at most {limit} times within {} s", window.as_secs())
                    }
                },
            );
            let hang = envoy.hang_limit.map_or("off".to_owned(), |limit| format!("{} s", limit.as_secs()));
            add("Envoy is killed if silent for", hang);
        }
    }
    if let Some(bootstrap) = config.envoy.as_ref().and_then(|envoy| envoy.files.sidecar()) {
        let bootstrap = &bootstrap.bootstrap;
        add("probed address", bootstrap.instance_ip.to_string());
        add("probe listener", bootstrap.probe_address.to_string());
        add(
            "connections to the application",
            match bootstrap.reuse_connections {
                true => "used again".to_owned(),
                false => "one for each probe".to_owned(),
            },
        );
    }
    add("readiness port", config.ready_address.to_string());
    add("stats port", config.stats_address.map_or("off".to_owned(), |address| address.to_string()));
    add("local port", config.local_address.to_string());
    add("Envoy's admin interface", config.admin.to_string());
    let data_path = config.data_path.as_ref().map_or("off", |url| url.authority.as_str());
    add("data-path check", data_path.to_owned());
    let drain = &config.drain;
    add("drain", format!("{} to {} s", drain.minimum.as_secs(), drain.deadline.as_secs()));
    let targets = config.metrics.targets.iter();
    let targets = targets.map(|target| format!(":{}{}", target.port, without_query(&target.path)));
    let envoy = config.metrics.envoy.then(|| "Envoy".to_owned());
    let merged: Vec<String> = envoy.into_iter().chain(targets).collect();
    add("merged metrics", if merged.is_empty() { "the agent's own".to_owned() } else { merged.join(", ") });
    rows.into()
}
