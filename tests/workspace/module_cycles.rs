//! Tests that the modules of each crate import each other without a cycle.

use std::collections::BTreeSet;
use std::path::Path;

use crate::dependencies::targets;
use crate::module_imports::{Imports, Module, Sources, expand, imports, read};

/// Imports that close a cycle: crate, module, what it imports. One that closes none any more fails the test.
const KNOWN: [(&str, &str, &str); 3] =
    [("benches", "setup", "kinds"), ("simulation", "invariants", "world"), ("wasm-host", "fault", "imports")];

/// Returns the modules that are in a cycle, or between two, with their imports among each other.
fn cycles(mut imports: Imports) -> Imports {
    loop {
        let imported: BTreeSet<String> = imports.values().flatten().cloned().collect();
        let before = imports.len();
        imports.retain(|module, names| !names.is_empty() && imported.contains(module));
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|names| names.retain(|name| left.contains(name)));
        if imports.len() == before && imports.values().all(|names| !names.is_empty()) {
            return imports;
        }
    }
}

/// Returns true if `to` leads back to `from`.
fn closes_cycle(imports: &Imports, from: &str, to: &str) -> bool {
    let (mut reached, mut next) = (BTreeSet::new(), vec![to.to_owned()]);
    while let Some(module) = next.pop() {
        if reached.insert(module.clone()) {
            next.extend(imports.get(&module).into_iter().flatten().cloned());
        }
    }
    imports.get(from).is_some_and(|names| names.contains(to)) && reached.contains(from)
}

#[test]
fn modules_import_each_other_without_cycles() {
    let mut unused: BTreeSet<_> = KNOWN.into_iter().collect();
    let mut found = Vec::new();
    let mut edges = 0;
    for (name, root) in targets() {
        let mut imports = imports(&read(Path::new(&root)));
        edges += imports.values().map(BTreeSet::len).sum::<usize>();
        let known = KNOWN.into_iter().filter(|(package, ..)| *package == name);
        let known: Vec<_> = known.filter(|(_, from, to)| closes_cycle(&imports, from, to)).collect();
        for known in known {
            unused.remove(&known);
            imports.get_mut(known.1).map(|names| names.remove(known.2));
        }
        let cycles = cycles(imports);
        if !cycles.is_empty() {
            found.push(format!("{name}: {cycles:#?}"));
        }
    }
    assert!(edges > 500, "{edges} imports");
    assert!(found.is_empty(), "cycles among these modules and their imports: {}", found.join("\n"));
    assert!(unused.is_empty(), "these imports close no cycle, remove them from KNOWN: {unused:#?}");
}

#[test]
fn a_cycle_is_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let imports = |rows: &[(&str, &[&str])]| {
        rows.iter().map(|(module, imported)| ((*module).to_owned(), names(imported))).collect::<Imports>()
    };
    assert!(cycles(imports(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
    let circle = imports(&[("a", &["b"]), ("b", &["a"]), ("c", &["a"]), ("d", &["c"])]);
    assert_eq!(cycles(circle.clone()).into_keys().collect::<Vec<_>>(), ["a", "b"]);
    assert!(closes_cycle(&circle, "a", "b") && !closes_cycle(&circle, "c", "a"));
}

#[test]
fn imports_are_those_among_modules_with_one_parent() {
    let sources: Sources = [
        ("", "pub use a::b::Thing; use crate::a;"),
        ("a", "mod b; use self::b::X; use super::c::{self, d::{E, F}};"),
        ("a::b", "fn f(x: super::super::c::G) { crate::a::c::h() }"),
        ("a::c", "use super::A;"),
        ("c", "use crate::Thing; use std::fmt;"),
    ]
    .map(|(module, code)| {
        (
            module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Module>(),
            code.to_owned(),
        )
    })
    .into_iter()
    .collect();
    let text = |imports: Imports| {
        let edge =
            |(from, to): (String, BTreeSet<String>)| to.into_iter().map(move |to| format!("{from} {to}"));
        imports.into_iter().flat_map(edge).collect::<Vec<_>>()
    };
    assert_eq!(text(imports(&sources)), ["a c", "a::b a::c", "c a"]);
    assert_eq!(
        expand("a::{b, c::{d, e}}; f").iter().map(|path| path.join(".")).collect::<Vec<_>>(),
        ["a.b", "a.c.d", "a.c.e"]
    );
}
