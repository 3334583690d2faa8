//! What a user chooses.

use std::time::Duration;

use injector::kinds::Kinds;
use injector::settings::Settings;

/// The settings that rules depend on besides the object.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings with which the object would be injected.
    pub settings: Settings,
    /// The kinds whose Pods are found.
    pub kinds: Kinds,
    /// A pause of the application that a livenessProbe must survive.
    pub expect_pause: Option<Duration>,
}
