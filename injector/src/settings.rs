//! The settings that the commands `inject` and `webhook` share.

use crate::template::Template;

/// The default status port of Istio and of this project.
pub const STATUS_PORT: u16 = 15020;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum InjectionMode {
    /// Inject the sidecar if it is absent, and rewrite the probes.
    Auto,
    /// Rewrite the probes of Pods that have a sidecar; never inject one.
    RewriteOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SidecarMode {
    /// An init container with `restartPolicy: Always` (Kubernetes 1.29 or newer).
    Native,
    /// A regular container, for clusters without native sidecars.
    Classic,
}

impl SidecarMode {
    /// Returns the word in the flag and the annotation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Classic => "classic",
        }
    }
}

/// The default settings; some can be overridden by a Pod's labels and annotations.
#[derive(Clone, Debug)]
pub struct Settings {
    pub sidecar_name: String,
    pub mode: InjectionMode,
    pub template: Template,
    pub sidecar_mode: SidecarMode,
    /// True if the application waits for a classic sidecar.
    pub hold: bool,
    pub rewrite_probes: bool,
    /// The port on which the sidecar receives probes; 0 disables rewriting.
    pub status_port: u16,
    /// Namespaces whose Pods are never changed.
    pub ignored_namespaces: Vec<String>,
}

/// Returns true if the sidecar may receive probes on `port`: it must not be another port of the
/// proxy.
pub fn is_valid_status_port(port: u16) -> bool {
    port == STATUS_PORT || !probe::ports::PROXY_PORTS.contains(&port)
}
