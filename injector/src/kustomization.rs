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
        files.extend(pod::list(kustomization, field).iter().flat_map(data));
    }
    files.retain(|(path, _)| !path.is_empty());
    files
}

/// Returns the configurations of plugins: each is a file, a directory with a kustomization, or the
/// configuration itself.
pub fn plugins(kustomization: &Value) -> impl Iterator<Item = &str> {
    let fields = ["generators", "transformers", "validators"].into_iter();
    fields.flat_map(|field| pod::list(kustomization, field)).filter_map(Value::as_str)
}

/// Returns the files of a kustomization that are objects.
pub fn resources(kustomization: &Value) -> impl Iterator<Item = &str> {
    pod::list(kustomization, "resources").iter().filter_map(Value::as_str)
}

/// Returns the files to which the configuration of a plugin of kustomize refers. The paths are relative
/// to the directory of the kustomization.
pub fn files_of_plugin(plugin: &Value) -> Vec<(&str, Use)> {
    let mut files: Vec<_> = match pod::text(plugin, "kind") {
        "PatchTransformer" | "PatchJson6902Transformer" => vec![(pod::text(plugin, "path"), Use::Patch)],
        "PatchStrategicMergeTransformer" => {
            let paths = pod::list(plugin, "paths").iter().filter_map(Value::as_str);
            paths.map(|path| (path, Use::Patch)).collect()
        }
        "ConfigMapGenerator" | "SecretGenerator" => data(plugin).collect(),
        _ => Vec::new(),
    };
    files.retain(|(path, _)| !path.is_empty());
    files
}

/// Returns the files of a generator. The key may precede the path: `app.yaml=files/app.yaml`.
fn data(generator: &Value) -> impl Iterator<Item = (&str, Use)> {
    let sources = pod::list(generator, "files").iter().filter_map(Value::as_str);
    sources.map(|file| (file.split_once('=').map_or(file, |(_, path)| path), Use::Data))
}

#[cfg(test)]
mod tests;
