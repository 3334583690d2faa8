//! The flags that set how Pods are injected, shared by the commands `inject` and `webhook`.

use std::path::PathBuf;

use clap::ArgAction;
use clap::builder::BoolishValueParser;

use crate::kinds::{Kinds, TemplatePath};
use crate::settings::{InjectionMode, Settings, SidecarMode, is_valid_status_port};
use crate::template::Template;

/// Flags that `inject` and `webhook` share.
#[derive(Debug, Clone, clap::Args)]
pub struct SettingsArgs {
    /// Name of the container that runs Envoy and holds the prober table; `istio-proxy` keeps
    /// Istio's name
    #[arg(long, env = "APP_HEALTH_SIDECAR_NAME", value_name = "NAME", default_value = "app-health-proxy")]
    pub sidecar_name: String,
    /// `auto` injects the sidecar if it is absent; `rewrite-only` only rewrites probes
    #[arg(long, env = "APP_HEALTH_MODE", value_enum, default_value_t = InjectionMode::Auto)]
    pub mode: InjectionMode,
    /// Sidecar template, a partial Pod as YAML. Default: the built-in template
    #[arg(long, env = "APP_HEALTH_TEMPLATE", value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Image of the sidecar; overrides the image in the template
    #[arg(long, env = "APP_HEALTH_IMAGE", value_name = "REF")]
    pub image: Option<String>,
    /// `native`: an init container with `restartPolicy: Always` (Kubernetes 1.29 or newer);
    /// `classic`: a regular container
    #[arg(long, env = "APP_HEALTH_SIDECAR_MODE", value_enum, default_value_t = SidecarMode::Native)]
    pub sidecar_mode: SidecarMode,
    /// Start a classic sidecar first and delay the application until it is ready
    #[arg(
        long,
        env = "APP_HEALTH_HOLD",
        value_parser = BoolishValueParser::new(),
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub hold: bool,
    /// Rewrite probes, unless an annotation of the Pod says otherwise
    #[arg(
        long,
        env = "APP_HEALTH_REWRITE_PROBES",
        value_parser = BoolishValueParser::new(),
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    pub rewrite_probes: bool,
    /// Port on which the sidecar answers probes, unless an annotation of the Pod says otherwise; 0
    /// disables rewriting
    #[arg(long, env = "APP_HEALTH_STATUSPORT", value_name = "PORT", default_value_t = 15020)]
    pub status_port: u16,
    /// Namespaces whose Pods are never changed
    #[arg(
        long,
        env = "APP_HEALTH_IGNORED_NAMESPACES",
        value_name = "NAMESPACE[,…]",
        value_delimiter = ',',
        default_value = "kube-system,kube-public,kube-node-lease"
    )]
    pub ignored_namespaces: Vec<String>,
}

/// Flags that `inject` and `lint` share.
#[derive(Debug, Clone, clap::Args)]
pub struct KindsArgs {
    /// Kind with a Pod template at another place than those of Kubernetes, such as
    /// `Game=spec.template` or `Game.example.com=spec.template`; repeatable
    #[arg(long, env = "APP_HEALTH_TEMPLATE_PATH", value_name = "KIND[.GROUP]=FIELD", value_delimiter = ',')]
    pub template_path: Vec<TemplatePath>,
}

impl KindsArgs {
    /// Returns all kinds that the commands know.
    pub fn kinds(&self) -> Kinds {
        Kinds::new(&self.template_path)
    }
}

impl SettingsArgs {
    /// Checks the flags together with `template`, the text of `--template`; `None` is the built-in
    /// template.
    ///
    /// # Errors
    /// Names the flag, its value and the reason.
    pub fn check(self, text: Option<&str>) -> Result<Settings, String> {
        let SettingsArgs {
            sidecar_name,
            mode,
            template: _, // its content is in `text`
            image,
            sidecar_mode,
            hold,
            rewrite_probes,
            status_port,
            ignored_namespaces,
        } = self;
        if !is_dns_label(&sidecar_name) {
            return Err(format!(
                "--sidecar-name = {sidecar_name:?}: must be a valid container name, which is a DNS label"
            ));
        }
        if status_port != 0 && !is_valid_status_port(status_port) {
            return Err(format!("--status-port = {status_port}: is already used by the proxy"));
        }
        let template = match text {
            None => Template::built_in(&sidecar_name, image.as_deref()),
            Some(text) => Template::parse(text, &sidecar_name, image.as_deref()),
        };
        let template = template.map_err(|error| error.to_string())?;
        Ok(Settings {
            sidecar_name,
            mode,
            template,
            sidecar_mode,
            hold,
            rewrite_probes,
            status_port,
            ignored_namespaces,
        })
    }
}

/// True for a DNS label as in RFC 1123, which Kubernetes requires of the names of containers.
fn is_dns_label(name: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
}

#[cfg(test)]
mod tests;
