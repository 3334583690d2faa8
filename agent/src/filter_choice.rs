//! Which form of the filter Envoy runs, and why.

use std::fmt;

use clap::ValueEnum;
use probe::{Connection, Handler, PluginConfig, Request};

use crate::envoy_version::{EnvoyBuild, EnvoyVersion};

/// The value of `--filter`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum WantedFilter {
    /// The native form if it is known to work, otherwise the wasm form.
    #[default]
    Auto,
    /// The WebAssembly module: in a sandbox, for any Envoy.
    Wasm,
    /// The dynamic module: less memory and CPU time, for the versions of Envoy that it is tested
    /// with.
    Native,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterForm {
    Wasm,
    Native,
}

impl FilterForm {
    /// Returns the word for metrics, logs and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Native => "native",
        }
    }
}

/// Why a form was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterReason {
    /// `--filter` names the form.
    Flag,
    /// The native form is tested with this version of Envoy.
    TestedVersion,
    /// The native form is not tested with this version of Envoy.
    UntestedVersion,
    /// The version of Envoy is not known.
    UnknownVersion,
    /// `--filter-wasm` or `--inline-filter` is set.
    WasmFile,
    /// The file system of the state directory allows no programs, so Envoy could not load a module.
    NoExec,
    /// Envoy rejected the configuration with the native form.
    Rejected,
    /// A declared header has an empty value, which a dynamic module cannot set.
    EmptyHeader,
}

impl FilterReason {
    /// Returns the word for metrics and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::TestedVersion => "tested_version",
            Self::UntestedVersion => "untested_version",
            Self::UnknownVersion => "unknown_version",
            Self::WasmFile => "wasm_file",
            Self::NoExec => "noexec",
            Self::Rejected => "rejected",
            Self::EmptyHeader => "empty_header",
        }
    }
}

impl fmt::Display for FilterReason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Flag => "--filter is set",
            Self::TestedVersion => "the native form is tested with this version of Envoy",
            Self::UntestedVersion => "the native form is not tested with this version of Envoy",
            Self::UnknownVersion => "the version of Envoy is unknown; set --envoy-version",
            Self::WasmFile => "a wasm file is given",
            Self::NoExec => {
                "the file system of --state-dir is mounted noexec, so Envoy could not load the native form"
            }
            Self::Rejected => "Envoy rejected the configuration with the native form",
            Self::EmptyHeader => {
                "a probe declares a header with an empty value, which the native form sends as a space"
            }
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterChoice {
    pub form: FilterForm,
    pub reason: FilterReason,
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    pub wanted: WantedFilter,
    /// True if a wasm file is given or embedded in the bootstrap.
    pub has_wasm_file: bool,
    /// True if the state directory allows no programs.
    pub is_noexec: bool,
    /// True if a probe declares a header with an empty value.
    pub has_empty_header: bool,
}

/// The version of the Envoy that will run the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownVersion {
    Unknown,
    Release(EnvoyVersion),
    /// Between two releases, such as `1.41.0-dev`, or a release that lacks fixes.
    Other,
}

impl From<EnvoyBuild> for KnownVersion {
    fn from(build: EnvoyBuild) -> Self {
        if build.is_fixed_release { Self::Release(build.version) } else { Self::Other }
    }
}

impl Circumstances {
    pub fn choose(self, envoy: KnownVersion) -> FilterChoice {
        let wasm = |reason| FilterChoice { form: FilterForm::Wasm, reason };
        match (self.wanted, envoy) {
            (WantedFilter::Wasm, _) => wasm(FilterReason::Flag),
            (WantedFilter::Native, _) => {
                FilterChoice { form: FilterForm::Native, reason: FilterReason::Flag }
            }
            (WantedFilter::Auto, _) if self.has_wasm_file => wasm(FilterReason::WasmFile),
            (WantedFilter::Auto, _) if self.has_empty_header => wasm(FilterReason::EmptyHeader),
            (WantedFilter::Auto, _) if self.is_noexec => wasm(FilterReason::NoExec),
            (WantedFilter::Auto, KnownVersion::Unknown) => wasm(FilterReason::UnknownVersion),
            (WantedFilter::Auto, KnownVersion::Release(version)) if version.is_tested_with_native() => {
                FilterChoice { form: FilterForm::Native, reason: FilterReason::TestedVersion }
            }
            (WantedFilter::Auto, _) => wasm(FilterReason::UntestedVersion),
        }
    }
}

/// Returns true if an http probe of the configuration sends a header with an empty value.
pub fn has_empty_header(config: &PluginConfig) -> bool {
    config.probers.iter().any(|(_, prober)| match &prober.handler {
        Handler::HttpGet(http) => {
            Request::new(http, "").sent_headers(Connection::Close).any(|(_, value)| value.is_empty())
        }
        Handler::TcpSocket(_) | Handler::Grpc(_) => false,
    })
}

#[cfg(test)]
mod tests;
