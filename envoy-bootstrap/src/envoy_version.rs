//! Envoy versions for which a bootstrap can be rendered.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Major and minor version of Envoy; the patch version does not affect the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EnvoyVersion(u16, u16);

/// Error for a version that is malformed or not supported.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NotEnvoyVersion {
    #[error("must be X.Y or X.Y.Z, for example 1.40")]
    Shape,
    /// The version is older than [`EnvoyVersion::OLDEST`].
    #[error(
        "must be {} or newer: older versions corrupt header values and hang when a filter fails",
        EnvoyVersion::OLDEST
    )]
    TooOld,
}

impl EnvoyVersion {
    /// Newest version that this agent knows.
    pub const NEWEST: Self = Self(1, 40);
    /// Oldest version that the probe path supports.
    pub const OLDEST: Self = Self(1, 36);
    /// First version that reads the filter's `capability_restriction_config` from `vm_config`.
    pub const CAPABILITIES_IN_VM_CONFIG: Self = Self(1, 40);
    /// Oldest version with which the native form of the filter is tested.
    const OLDEST_WITH_NATIVE: Self = Self(1, 39);

    pub fn is_tested_with_native(self) -> bool {
        (Self::OLDEST_WITH_NATIVE..=Self::NEWEST).contains(&self)
    }
}

/// First patch releases with the fixes that the probe path needs; in older ones a failure of the
/// filter can hang Envoy.
const FIXED: [(u16, u16, u16); 4] = [(1, 36, 10), (1, 37, 6), (1, 38, 4), (1, 39, 1)];

/// Returns true if Envoy `version`, such as `1.39.0`, lacks fixes that the probe path needs.
/// Versions of another form, such as `1.40.0-dev`, return false.
pub fn lacks_fixes(version: &str) -> bool {
    let numbers: Vec<u16> = version.split('.').map_while(|number| number.parse().ok()).collect();
    let [major, minor, patch] = numbers.as_slice() else { return false };
    (*major, *minor) < (1, 36)
        || FIXED.iter().any(|(fixed_major, fixed_minor, fixed)| {
            (major, minor) == (fixed_major, fixed_minor) && patch < fixed
        })
}

/// A build of Envoy, as `envoy --version` or the flag `--envoy-version` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvoyBuild {
    /// `1.41.0-dev` counts as 1.41.
    pub version: EnvoyVersion,
    /// False between two releases, and for a release that [`lacks_fixes`].
    pub is_fixed_release: bool,
}

impl FromStr for EnvoyBuild {
    type Err = NotEnvoyVersion;

    fn from_str(text: &str) -> Result<Self, NotEnvoyVersion> {
        let number = text.split('-').next().unwrap_or_default();
        Ok(Self { version: number.parse()?, is_fixed_release: number == text && !lacks_fixes(text) })
    }
}

impl FromStr for EnvoyVersion {
    type Err = NotEnvoyVersion;

    fn from_str(text: &str) -> Result<Self, NotEnvoyVersion> {
        let numbers: Result<Vec<u16>, _> = text.split('.').map(str::parse).collect();
        match numbers.map_err(|_| NotEnvoyVersion::Shape)?.as_slice() {
            [major, minor] | [major, minor, _] => {
                let version = Self(*major, *minor);
                if version < Self::OLDEST { Err(NotEnvoyVersion::TooOld) } else { Ok(version) }
            }
            _ => Err(NotEnvoyVersion::Shape),
        }
    }
}

impl fmt::Display for EnvoyVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests;
