//! Reads which files a kustomization uses as something else than objects.

use serde_json::Value;

use crate::pod;

/// Names of the file that configures kustomize in a directory.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// What a kustomization uses a file for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A patch of objects.
    Patch,
    /// The content of a ConfigMap or Secret.
    Data,
}

/// Returns the files to which a kustomization refers, other than resources. The paths are relative
/// to its directory.
pub fn files(kustomization: &Value) -> Vec<(&str, Use)> {
    let mut files = Vec::new();
    for field in ["patches", "patchesJson6902"] {
        let patches = pod::list(kustomization, field).iter();
        files.extend(patches.map(|patch| (pod::text(patch, "path"), Use::Patch)));
    }
    // An element of this list is a path or the patch itself.
    let merged = pod::list(kustomization, "patchesStrategicMerge").iter().filter_map(Value::as_str);
    files.extend(merged.filter(|text| !text.contains([':', '\n'])).map(|path| (path, Use::Patch)));
    for field in ["configMapGenerator", "secretGenerator"] {
        let generators = pod::list(kustomization, field).iter();
        let sources =
            generators.flat_map(|generator| pod::list(generator, "files")).filter_map(Value::as_str);
        // The key may precede the path: `app.yaml=files/app.yaml`.
        files.extend(sources.map(|file| (file.split_once('=').map_or(file, |(_, path)| path), Use::Data)));
    }
    files.retain(|(path, _)| !path.is_empty());
    files
}

#[cfg(test)]
mod tests;
