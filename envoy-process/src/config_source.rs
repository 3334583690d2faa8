//! Where Envoy's configuration comes from, and the files that a rendered one refers to.

use std::path::PathBuf;

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use envoy_bootstrap::filter_choice::{
    Circumstances, FilterChoice, FilterForm, FilterReason, KnownVersion, WantedFilter,
};

use crate::state_dir::{self, EmbeddedFilter};

/// A bootstrap and the files that it refers to.
#[derive(Debug, Clone)]
pub struct SidecarConfig {
    /// The bootstrap to render. `filter` already contains the path where the filter will be
    /// written.
    pub bootstrap: Bootstrap,
    /// `None` if the agent answers probes itself.
    pub filter_choice: Option<FilterChoice>,
    /// What the choice depends on apart from Envoy's version.
    pub circumstances: Circumstances,
    /// Absolute path of the directory for the filter and the admin socket.
    pub state_dir: PathBuf,
    /// True if the admin socket is in the state directory, which must then exist, because Envoy does
    /// not create it.
    pub create_state_dir: bool,
    /// The embedded filter that must be written to the state directory.
    pub embedded: Option<&'static EmbeddedFilter>,
    /// Settings that were accepted but ignored, one line each.
    pub warnings: Vec<String>,
}

impl SidecarConfig {
    /// Chooses the form of the filter for a version of Envoy.
    pub fn choose_filter(&mut self, version: KnownVersion) {
        if self.filter_choice.is_some() {
            self.filter_choice = Some(self.circumstances.choose(version));
            self.apply_choice();
        }
    }

    /// Leaves filter and probe listener out, because the agent answers probes itself.
    pub fn leave_filter_out(&mut self) {
        self.filter_choice = None;
        self.bootstrap.filter = None;
        self.embedded = None;
    }

    /// Changes to the wasm form after Envoy has rejected the native one. Returns false if there is no
    /// other form to change to, because the user chose one or the wasm form was chosen already.
    pub fn fall_back_to_wasm(&mut self) -> bool {
        let is_native = self.filter_choice.is_some_and(|choice| choice.form == FilterForm::Native);
        let may_change = self.circumstances.wanted == WantedFilter::Auto && is_native;
        if may_change {
            self.filter_choice =
                Some(FilterChoice { form: FilterForm::Wasm, reason: FilterReason::Rejected });
            self.apply_choice();
        }
        may_change
    }

    /// Makes the bootstrap refer to the chosen form.
    pub fn apply_choice(&mut self) {
        let in_state_dir = |filter: &EmbeddedFilter| self.state_dir.join(filter.file_name);
        let Some(choice) = self.filter_choice else { return };
        let (code, embedded) = match choice.form {
            FilterForm::Wasm if self.circumstances.has_wasm_file => return,
            FilterForm::Wasm => (FilterCode::File(in_state_dir(&state_dir::WASM)), &state_dir::WASM),
            FilterForm::Native => (FilterCode::Module(in_state_dir(&state_dir::MODULE)), &state_dir::MODULE),
        };
        self.bootstrap.filter = Some(code);
        self.embedded = Some(embedded);
    }
}

/// Where Envoy's configuration comes from.
#[derive(Debug, Clone)]
pub enum EnvoyConfigSource {
    /// Rendered and written to the state directory.
    Rendered(Box<SidecarConfig>),
    /// The user's file, with the rendered configuration merged over it.
    Merged(PathBuf, Box<SidecarConfig>),
    /// The user's file alone.
    Given(PathBuf),
}

impl EnvoyConfigSource {
    /// Returns the rendered part, if any.
    pub fn sidecar(&self) -> Option<&SidecarConfig> {
        match self {
            Self::Rendered(sidecar) | Self::Merged(_, sidecar) => Some(sidecar),
            Self::Given(_) => None,
        }
    }

    pub fn sidecar_mut(&mut self) -> Option<&mut SidecarConfig> {
        match self {
            Self::Rendered(sidecar) | Self::Merged(_, sidecar) => Some(sidecar),
            Self::Given(_) => None,
        }
    }
}
