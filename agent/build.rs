//! Prepares what the binary embeds: the commit. Links the unwinder into the binary, and equal functions once.

#[path = "../serving/build/commit.rs"]
mod commit;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("agent/ is a directory of the workspace");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    commit::emit(workspace);
    if let Err(reason) = static_unwinder(&out) {
        println!("cargo::error={reason}");
    }
    merge_equal_functions();
}

/// Images without a shell or compiler lack `libgcc_s.so.1`: the linker finds a script of that name
/// which refers to the static library.
fn static_unwinder(out: &Path) -> Result<(), String> {
    if std::env::var_os("CARGO_CFG_TARGET_ENV").is_some_and(|env| env == "gnu") {
        fs::write(out.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n")
            .map_err(|error| format!("libgcc_s.so: {error}"))?;
        println!("cargo::rustc-link-search=native={}", out.display());
    }
    Ok(())
}

/// Functions with the same machine code are linked once, which makes the file 0.8 % smaller. Nothing in it may
/// depend on functions having different addresses. Only for the target for which rustc uses LLD, which can do so.
fn merge_equal_functions() {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
