//! What both commands may be told, checked.

use crate::template::Template;

/// The status port of Istio, and of this project.
pub const STATUS_PORT: u16 = 15020;
/// The container that carries Envoy and the table.
pub const SIDECAR_NAME: &str = "app-health-proxy";

/// Whether a sidecar that is absent is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Inject it where it is absent, and rewrite.
    Auto,
    /// Rewrite where it is there, and never inject.
    RewriteOnly,
}

/// As what the sidecar runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SidecarMode {
    /// An init container with `restartPolicy: Always` (Kubernetes 1.29 or newer).
    Native,
    /// An ordinary container.
    Classic,
}

impl SidecarMode {
    /// The word of flag and annotation.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Classic => "classic",
        }
    }
}

/// The settings of every Pod; a Pod's own labels and annotations beat some of them.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of the container that is the sidecar.
    pub sidecar_name: String,
    /// Whether a sidecar is injected at all.
    pub mode: Mode,
    /// What is injected.
    pub template: Template,
    /// As what.
    pub sidecar_mode: SidecarMode,
    /// Whether a classic sidecar holds the application back.
    pub hold: bool,
    /// Whether probes are rewritten.
    pub rewrite_probes: bool,
    /// Where the sidecar answers probes; 0 switches rewriting off.
    pub status_port: u16,
    /// Namespaces whose Pods are never touched.
    pub ignored_namespaces: Vec<String>,
}

/// Whether the sidecar may answer probes on `port`: none of the proxy's other ports.
pub fn may_be_status_port(port: u16) -> bool {
    port == STATUS_PORT || !probe::ports::ALWAYS.contains(&port)
}
