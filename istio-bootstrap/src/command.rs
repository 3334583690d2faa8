//! The command line of `pilot-agent proxy`, which the injector writes.

use thiserror::Error;

use probe::go::parse_bool;

/// Flags without a value of their own: `--flag` is `--flag=true`.
const BOOLEANS: [&str; 2] = ["profiling", "log_as_json"];
/// Flags with a value that are accepted and ignored: what they configure does not exist here.
const IGNORED: [&str; 14] = [
    "ctrlz_address",
    "ctrlz_port",
    "keepaliveInterval",
    "keepaliveMaxServerConnectionAge",
    "keepaliveTimeout",
    "log_caller",
    "log_rotate",
    "log_rotate_max_age",
    "log_rotate_max_backups",
    "log_rotate_max_size",
    "log_stacktrace_level",
    "log_target",
    "tokenManagerPlugin",
    "vklog",
];

/// What the command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyCommand {
    /// `sidecar`, `router` and so on.
    pub node_type: String,
    /// Empty if it is that of the namespace.
    pub domain: String,
    pub mesh_file: String,
    pub sts_port: i64,
    pub service_cluster: String,
    /// Envoy's level, and those of its components.
    pub envoy_log_level: String,
    pub envoy_component_log_level: String,
    pub concurrency: i32,
    pub template_file: String,
    pub outlier_log_path: String,
    /// Levels of the agent's own log, such as `default:info,ads:debug`.
    pub log_output_level: String,
    pub log_as_json: bool,
}

impl Default for ProxyCommand {
    fn default() -> Self {
        Self {
            node_type: "sidecar".to_owned(),
            domain: String::new(),
            mesh_file: "./etc/istio/config/mesh".to_owned(),
            sts_port: 0,
            service_cluster: "istio-proxy".to_owned(),
            envoy_log_level: "warning".to_owned(),
            envoy_component_log_level: String::new(),
            concurrency: 0,
            template_file: String::new(),
            outlier_log_path: String::new(),
            log_output_level: "default:info".to_owned(),
            log_as_json: false,
        }
    }
}

/// A command line that Istio's agent refuses too.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidCommand {
    #[error("--{0}: needs a value")]
    NoValue(String),
    #[error("--{flag} = {value:?}: must be {expected}")]
    Value { flag: String, value: String, expected: &'static str },
}

impl ProxyCommand {
    /// Reads the words after `proxy`. Unknown flags are ignored, together with the word that follows unless it
    /// is a flag, as Istio's agent does.
    ///
    /// # Errors
    /// The first flag without a value, or whose value has the wrong type.
    pub fn parse(words: &[String]) -> Result<Self, InvalidCommand> {
        let mut command = Self::default();
        let mut positional = Vec::new();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
                positional.push(word);
                continue;
            };
            if flag == "-" {
                positional.extend(words);
                break;
            }
            let flag = flag.strip_prefix('-').unwrap_or(flag);
            let (flag, value) = match flag.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (flag, None),
            };
            if BOOLEANS.contains(&flag) {
                command.set_boolean(flag, value.unwrap_or("true"))?;
            } else if let Some(value) = value {
                command.set(flag, value)?;
            } else if command.has(flag) || IGNORED.contains(&flag) {
                let value = words.next().ok_or_else(|| InvalidCommand::NoValue(flag.to_owned()))?;
                command.set(flag, value)?;
            } else {
                words.next_if(|next| !next.starts_with('-'));
            }
        }
        if let Some(node_type) = positional.first() {
            (*node_type).clone_into(&mut command.node_type);
        }
        Ok(command)
    }

    fn has(&mut self, flag: &str) -> bool {
        self.text(flag).is_some() || matches!(flag, "stsPort" | "concurrency")
    }

    fn text(&mut self, flag: &str) -> Option<&mut String> {
        Some(match flag {
            "domain" => &mut self.domain,
            "meshConfig" => &mut self.mesh_file,
            "serviceCluster" => &mut self.service_cluster,
            "proxyLogLevel" => &mut self.envoy_log_level,
            "proxyComponentLogLevel" => &mut self.envoy_component_log_level,
            "templateFile" => &mut self.template_file,
            "outlierLogPath" => &mut self.outlier_log_path,
            "log_output_level" => &mut self.log_output_level,
            _ => return None,
        })
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), InvalidCommand> {
        let invalid =
            || InvalidCommand::Value { flag: flag.to_owned(), value: value.to_owned(), expected: "a number" };
        match flag {
            "stsPort" => self.sts_port = value.parse().map_err(|_| invalid())?,
            "concurrency" => self.concurrency = value.parse().map_err(|_| invalid())?,
            _ => {
                if let Some(text) = self.text(flag) {
                    value.clone_into(text);
                }
            }
        }
        Ok(())
    }

    fn set_boolean(&mut self, flag: &str, value: &str) -> Result<(), InvalidCommand> {
        let parsed = parse_bool(value).ok_or_else(|| InvalidCommand::Value {
            flag: flag.to_owned(),
            value: value.to_owned(),
            expected: "true or false",
        })?;
        if flag == "log_as_json" {
            self.log_as_json = parsed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
