//! What goes wrong during a soak test.

/// A fault that lasts for some seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing listens on the application's port.
    ApplicationDies,
    ApplicationHangs,
    ApplicationSlow,
    ApplicationFails,
    EnvoyKilled,
    /// Envoy is stopped with SIGSTOP, until the agent kills it.
    EnvoyHangs,
    DiscoveryRestarts,
    DiscoveryKilled,
    /// A file of discovery's configuration is replaced by an invalid one.
    InvalidConfiguration,
    /// The webhook's certificate is replaced by a file that is none.
    InvalidCertificate,
    /// A virtual machine reports ill health.
    MachineFails,
}

impl Fault {
    pub(super) const ALL: [Self; 11] = [
        Self::ApplicationDies,
        Self::ApplicationHangs,
        Self::ApplicationSlow,
        Self::ApplicationFails,
        Self::EnvoyKilled,
        Self::EnvoyHangs,
        Self::DiscoveryRestarts,
        Self::DiscoveryKilled,
        Self::InvalidConfiguration,
        Self::InvalidCertificate,
        Self::MachineFails,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ApplicationDies => "application dies",
            Self::ApplicationHangs => "application hangs",
            Self::ApplicationSlow => "application is slow",
            Self::ApplicationFails => "application fails",
            Self::EnvoyKilled => "Envoy is killed",
            Self::EnvoyHangs => "Envoy hangs",
            Self::DiscoveryRestarts => "discovery restarts",
            Self::DiscoveryKilled => "discovery is killed",
            Self::InvalidConfiguration => "invalid configuration",
            Self::InvalidCertificate => "invalid certificate",
            Self::MachineFails => "a machine fails",
        }
    }
}
