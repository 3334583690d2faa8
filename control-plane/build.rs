//! Finds out the commit.

#[path = "../serving/build/commit.rs"]
mod commit;

use std::path::Path;

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    commit::emit(folder.parent().expect("control-plane/ is a directory of the workspace"));
}
