//! Rules for sources: names of modules, and where the environment is read.

use std::path::PathBuf;

use crate::dependencies::ALLOWED;
use crate::{files, root};

#[test]
fn no_file_is_called_mod() {
    let found: Vec<PathBuf> =
        files(&root(), ".rs").into_iter().filter(|path| path.ends_with("mod.rs")).collect();
    assert_eq!(found, Vec::<PathBuf>::new());
}

#[test]
fn the_environment_is_read_in_one_file() {
    let reads = |path: &PathBuf| std::fs::read_to_string(path).expect("a source").contains("std::env");
    for (folder, _) in ALLOWED {
        let readers: Vec<PathBuf> =
            files(&root().join(folder).join("src"), ".rs").into_iter().filter(reads).collect();
        let allowed =
            |path: &PathBuf| path.ends_with("serving/src/environment.rs") || path.ends_with("tests.rs");
        assert!(readers.iter().all(allowed), "{readers:?}");
    }
}
