//! The text of `--version`: version, commit, tested versions.

use std::sync::LazyLock;

pub(super) static LONG: LazyLock<String> =
    LazyLock::new(|| serving::version::long(env!("CARGO_PKG_VERSION"), env!("APP_HEALTH_COMMIT"), &[]));
