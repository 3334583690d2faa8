//! The file of the last good xDS configuration.

use std::fs;
use std::path::Path;

use xds_proxy::{CacheError, LastGood};

/// Returns all resources of a file, and nothing if there is none yet.
///
/// # Panics
/// If the file is damaged.
pub fn text(path: &Path) -> String {
    let Ok(file) = fs::read(path) else { return String::new() };
    let node = match LastGood::decode(file.clone(), "") {
        Err(CacheError::Foreign(node)) => node,
        other => panic!("not a file of a node: {other:?}"),
    };
    let good = LastGood::decode(file, &node).expect("a valid file");
    let resources = good.0.values().flat_map(|good| good.resources());
    resources.map(|(_, stored)| String::from_utf8_lossy(&stored.any).into_owned()).collect()
}
