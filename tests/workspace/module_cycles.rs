//! Tests that the top-level modules of the binaries import each other without a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{files, root};

/// Imports of each module.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reads which top-level modules each top-level module of the crate names in `crate::` paths. Unit
/// tests do not count, nor does `main.rs`.
fn imports(source: &Path) -> Imports {
    let mut imports = Imports::new();
    for file in files(source, ".rs") {
        let path = file.strip_prefix(source).expect("a file of this folder").to_string_lossy();
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
        if is_test || matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
        for path in code.join("\n").split("crate::").skip(1) {
            imports.entry(module.clone()).or_default().extend(first_names(path));
        }
        imports.entry(module.clone()).or_default().remove(&module);
    }
    let modules: BTreeSet<String> = imports.keys().cloned().collect();
    imports.values_mut().for_each(|imported| imported.retain(|name| modules.contains(name)));
    imports
}

/// Returns the first name of the path `path`, or of each path of a group such as `{a, b::{c, d}}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| {
        let is_name = |char: &char| char.is_ascii_alphanumeric() || *char == '_';
        text.trim_start().chars().take_while(is_name).collect::<String>()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut depth) = (vec![name(group)], 0);
    for (index, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[index + 1..])),
            _ => {}
        }
    }
    names
}

/// Removes modules that import no other one, until there are none left or only cycles.
fn cycles(mut imports: Imports) -> Imports {
    loop {
        let leaves: BTreeSet<String> =
            imports.iter().filter(|(_, names)| names.is_empty()).map(|(module, _)| module.clone()).collect();
        if leaves.is_empty() {
            return imports;
        }
        imports.retain(|module, _| !leaves.contains(module));
        imports.values_mut().for_each(|names| names.retain(|name| !leaves.contains(name)));
    }
}

#[test]
fn modules_import_each_other_without_cycles() {
    for folder in ["agent/src", "control-plane/src"] {
        let imports = imports(&root().join(folder));
        assert!(imports.len() > 5, "{folder}: {imports:?}");
        let cycles = cycles(imports);
        assert!(cycles.is_empty(), "{folder}: a cycle among these modules and their imports: {cycles:#?}");
    }
}

#[test]
fn a_cycle_is_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let imports = |rows: &[(&str, &[&str])]| {
        rows.iter().map(|(module, imported)| ((*module).to_owned(), names(imported))).collect::<Imports>()
    };
    assert!(cycles(imports(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let found = cycles(imports(&[("a", &["b"]), ("b", &["a"]), ("c", &[]), ("d", &["c"])]));
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(first_names("{a, b::{c, d},\n  e};"), ["a", "b", "e"]);
    assert_eq!(first_names("a::b;"), ["a"]);
}
