//! Turns the flags of `explain` into validated configuration.

use std::path::PathBuf;
use std::time::Duration;

use crate::args::explain::{ExplainArgs, ReportFormat};
use ::explain::object::ObjectName;
use serving::exit::Failure;

/// Configuration of `explain`.
#[derive(Debug)]
pub struct ExplainConfig {
    pub object: ObjectName,
    /// `None`: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub output: ReportFormat,
    /// Whether to print the report again after every change.
    pub watch: bool,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Name of the MutatingWebhookConfiguration.
    pub webhook_configuration: String,
}

impl ExplainConfig {
    /// Parses the name of the object, which may be two words as with kubectl.
    pub fn new(args: ExplainArgs) -> Result<Self, Failure> {
        let ExplainArgs { object, namespace, kubeconfig, context, output, watch, timeout, webhook_config } =
            args;
        let object = object.join("/");
        let object = ObjectName::parse(&object)
            .map_err(|error| Failure::Usage(format!("KIND/NAME = {object:?}: {error}")))?;
        for (flag, name) in
            [("--namespace", namespace.as_deref()), ("--webhook-config", Some(&webhook_config))]
        {
            let valid =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
            if let Some(name) = name.filter(|name| name.is_empty() || !name.bytes().all(valid)) {
                return Err(Failure::Usage(format!(
                    "{flag} = {name:?}: must contain only lower-case letters, digits, '-' and '.'"
                )));
            }
        }
        if timeout.is_zero() {
            return Err(Failure::Usage("--timeout = 0: must be longer".to_owned()));
        }
        Ok(Self {
            object,
            namespace,
            kubeconfig,
            context,
            output,
            watch,
            timeout,
            webhook_configuration: webhook_config,
        })
    }
}

#[cfg(test)]
mod tests;
