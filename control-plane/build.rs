//! Computes the security policy of the status page.

#[path = "../serving/build/page_policy.rs"]
mod page_policy;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/discovery/page/page.html");
    println!("cargo::rerun-if-changed={}", file.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let written = fs::read_to_string(&file)
        .map_err(|error| error.to_string())
        .and_then(|page| page_policy::policy(&page))
        .and_then(|policy| fs::write(out.join("page_policy.txt"), policy).map_err(|error| error.to_string()));
    if let Err(error) = written {
        println!("cargo::error={}: {error}", file.display());
    }
}
