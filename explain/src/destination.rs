//! Where kubelet sends a probe.

use serde::Serialize;

/// The receiver of a probe that kubelet sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// The filter in the sidecar, which sends it to the application.
    Sidecar,
    /// The declared port of the Pod.
    Application,
    /// A command that kubelet runs in the container.
    Command,
    /// A host other than the Pod.
    OtherHost,
    /// The handler is not known here.
    Unknown,
}
