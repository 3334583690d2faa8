//! The agents that are compared.

use std::path::PathBuf;

use kit::agent::binary_of;

use crate::istio;

/// Which agent runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Istios,
    /// Ours, in the place of Istio's.
    Ours,
}

impl Program {
    pub fn name(self) -> &'static str {
        match self {
            Self::Istios => "pilot-agent",
            Self::Ours => "app-health-agent",
        }
    }

    pub fn path(self) -> PathBuf {
        match self {
            Self::Istios => istio("pilot-agent"),
            Self::Ours => binary_of("app-health-agent"),
        }
    }
}
