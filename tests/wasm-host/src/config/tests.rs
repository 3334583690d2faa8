use std::path::{Path, PathBuf};

use super::FilterFile;

#[test]
fn the_path_of_the_filter_depends_on_cargo_and_the_environment() {
    let wasm = |target: Option<&str>, wasm: Option<&str>| {
        FilterFile::of(Path::new("/w"), target.map(PathBuf::from), wasm.map(PathBuf::from)).wasm
    };
    let built = "wasm32-unknown-unknown/wasm/app_health_filter.wasm";
    assert_eq!(wasm(None, None), Path::new("/w/target").join(built));
    assert_eq!(wasm(Some("/t"), None), Path::new("/t").join(built));
    assert_eq!(wasm(Some("t"), None), Path::new("/w/t").join(built));
    assert_eq!(wasm(Some("/t"), Some("/x.wasm")), Path::new("/x.wasm"));
    let sources = FilterFile::from_environment().sources;
    assert!(sources.iter().all(|source| source.exists()), "{sources:?}");
}
