//! Which form of the filter Envoy runs, and why.

use clap::ValueEnum;
use probe::{Connection, PluginConfig, Request};

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

enum_table::table! {
    /// Why a form was chosen.
    pub enum FilterReason(
        /// Returns the word for metrics and JSON.
        word: &'static str,
        /// Returns the text for logs and the page.
        text: &'static str,
    ) {
        Flag("flag", "--filter is set"),
        TestedVersion("tested_version", "the native form is tested with this version of Envoy"),
        UntestedVersion("untested_version", "the native form is not tested with this version of Envoy"),
        UnknownVersion("unknown_version", "the version of Envoy is unknown; set --envoy-version"),
        /// `--filter-wasm` or `--inline-filter` is set.
        WasmFile("wasm_file", "a wasm file is given"),
        NoExec(
            "noexec",
            "the file system of --state-dir is mounted noexec, so Envoy could not load the native form",
        ),
        Rejected("rejected", "Envoy rejected the configuration with the native form"),
        EmptyHeader(
            "empty_header",
            "a probe declares a header with an empty value, which the native form sends as a space",
        ),
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
    config
        .probers
        .iter()
        .filter_map(|(_, prober)| prober.http_get())
        .any(|http| Request::new(http, "").sent_headers(Connection::Close).any(|(_, value)| value.is_empty()))
}

#[cfg(test)]
mod tests;
