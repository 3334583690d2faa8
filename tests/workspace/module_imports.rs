//! Reads which modules of a crate import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::files;

/// The names on the way from the root of the crate to a module; none for the root.
pub(crate) type Module = Vec<String>;

/// The modules of a crate with their sources, without comments and unit tests.
pub(crate) type Sources = BTreeMap<Module, String>;

/// Imports among modules with the same parent, by their paths (`entries::event`).
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reads the crate with this root: `src/lib.rs`, or a file such as `benches/pages.rs` with modules in
/// `benches/pages/`.
pub(crate) fn read(root: &Path) -> Sources {
    let (stem, folder) =
        (root.file_stem().unwrap_or_default(), root.parent().expect("a file is in a folder"));
    let has_folder = stem == "lib" || stem == "main";
    let folder = if has_folder { folder.to_path_buf() } else { folder.join(stem) };
    let mut sources = Sources::from([(Module::new(), code(root))]);
    for file in if folder.is_dir() { files(&folder, ".rs") } else { Vec::new() } {
        let path = file.strip_prefix(&folder).expect("a file of this folder").with_extension("");
        let module: Module = path.iter().map(|name| name.to_string_lossy().into_owned()).collect();
        let is_other =
            module == ["lib"] || module == ["main"] || module.first().is_some_and(|name| name == "bin");
        if !is_other && !module.iter().any(|name| name == "tests") {
            sources.insert(module, code(&file));
        }
    }
    sources
}

fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).expect("a source");
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    lines.join("\n")
}

/// Returns the imports among modules with the same parent. A module stands for its children too, so an
/// import of `a::b` in `c::d` is one of `a` in `c`; an import of a parent or a child counts nowhere.
pub(crate) fn imports(sources: &Sources) -> Imports {
    let exports = exports(sources);
    let mut imports = Imports::new();
    for (module, code) in sources {
        for path in paths(code, &["crate::", "super::", "self::"]) {
            let Some(imported) = resolve(module, &path, sources, &exports) else { continue };
            let common = module.iter().zip(&imported).take_while(|(left, right)| left == right).count();
            if common < module.len() && common < imported.len() {
                let name = |module: &[String]| module[..=common].join("::");
                imports.entry(name(module)).or_default().insert(name(&imported));
            }
        }
    }
    imports
}

/// Returns, for each name that a module exports with `pub use`, the module that it is from.
fn exports(sources: &Sources) -> BTreeMap<(Module, String), Module> {
    let mut exports = BTreeMap::new();
    for (module, code) in sources {
        for mut path in paths(code, &["pub use ", "pub(crate) use ", "pub(super) use "]) {
            let name = path.pop().expect("a path has a name");
            if !path.first().is_some_and(|first| matches!(first.as_str(), "crate" | "super" | "self")) {
                path.insert(0, "self".to_owned());
            }
            let from = resolve(module, &path, sources, &BTreeMap::new());
            exports.extend(from.filter(|from| from != module).map(|from| ((module.clone(), name), from)));
        }
    }
    exports
}

/// Returns the module that contains what `path` names in `module`, or `None` if that is outside the crate.
fn resolve(
    module: &[String],
    path: &[String],
    sources: &Sources,
    exports: &BTreeMap<(Module, String), Module>,
) -> Option<Module> {
    let mut found = module.to_vec();
    for name in path {
        match name.as_str() {
            "crate" => found.clear(),
            "self" => {}
            "super" => drop(found.pop()?),
            name => {
                let child = [found.as_slice(), &[name.to_owned()]].concat();
                match exports.get(&(found.clone(), name.to_owned())) {
                    _ if sources.contains_key(&child) => found = child,
                    Some(from) => found.clone_from(from),
                    None => break,
                }
            }
        }
    }
    Some(found)
}

/// Returns the paths that follow or begin with one of these texts.
fn paths(code: &str, starts: &[&str]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for start in starts {
        let is_keyword = start.ends_with("::");
        for (index, _) in code.match_indices(start) {
            // Not the second `super` of `super::super`, nor the end of a longer name.
            if !code[..index].ends_with(|char: char| is_of_name(char) || (is_keyword && char == ':')) {
                paths.extend(expand(&code[if is_keyword { index } else { index + start.len() }..]));
            }
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

fn is_of_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Returns the path at the begin of `text`, or each path of a group such as `a::{b, c::{d, e}}`.
pub(crate) fn expand(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if let Some(group) = text.strip_prefix('{') {
        return items(group).into_iter().flat_map(expand).collect();
    }
    let (name, rest) = text.split_at(text.find(|char| !is_of_name(char)).unwrap_or(text.len()));
    let within = match rest.strip_prefix("::") {
        _ if name.is_empty() => return vec![Vec::new()],
        Some(rest) => expand(rest),
        None => vec![Vec::new()],
    };
    within.into_iter().map(|path| [vec![name.to_owned()], path].concat()).collect()
}

/// Splits a group at the commas outside inner groups; the text begins after the group's brace.
fn items(group: &str) -> Vec<&str> {
    let (mut items, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (index, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                items.push(group[begin..index].trim());
                begin = index + 1;
                if char == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    items.retain(|item| !item.is_empty());
    items
}
