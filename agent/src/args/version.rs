//! The text of `--version`: version, commit, forms of the filter, tested versions.

use std::sync::LazyLock;

use envoy_process::state_dir::{MODULE, WASM};

/// The machines that this build is for; see the feature `vm`.
const BUILT_FOR: &str = if cfg!(feature = "vm") { "virtual machines" } else { "Pods" };

pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let filter = format!("wasm {}, native {}", WASM.file_name, MODULE.file_name);
    let facts = [("built for", BUILT_FOR), ("filter", filter.as_str())];
    serving::version::long(env!("CARGO_PKG_VERSION"), env!("APP_HEALTH_COMMIT"), &facts)
});
