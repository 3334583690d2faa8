//! Computes the security policy of the status page, and finds out the commit.

#[path = "../serving/build/commit.rs"]
mod commit;
#[path = "../serving/build/page_policy.rs"]
mod page_policy;

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    commit::emit(folder.parent().expect("control-plane/ is a directory of the workspace"));
    let file = folder.join("src/discovery/page/page.html");
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
