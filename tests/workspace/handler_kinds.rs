//! Documents and conformance cases know each kind of handler.

use probe::{HandlerField, HandlerKind};

use crate::{files, root};

/// Returns the row of a table about a kind.
fn row(document: &str, kind: HandlerKind) -> String {
    let text = std::fs::read_to_string(root().join(document)).expect(document);
    let start = format!("| `{}` |", kind.name());
    let row = text.lines().find(|line| line.starts_with(&start));
    row.unwrap_or_else(|| panic!("{document} has no row about {}", kind.name())).to_owned()
}

#[test]
fn documents_describe_each_kind_of_handler() {
    for kind in HandlerKind::ALL {
        row("docs/vm.md", kind);
        let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).expect("a changelog");
        assert!(changelog.contains(&format!("`{}`", kind.name())), "CHANGELOG.md: no {}", kind.name());
        let row = row("docs/configuration.md", kind);
        for field in kind.fields().iter().filter(|field| **field != HandlerField::Host) {
            let name = format!("`{}`", field.name());
            assert!(row.contains(&name), "docs/configuration.md: {} has the field {name}", kind.name());
        }
    }
}

#[test]
fn each_kind_of_handler_has_a_conformance_case() {
    let cases = files(&root().join("tests/conformance/cases"), ".yaml");
    let cases: String = cases.iter().map(|file| std::fs::read_to_string(file).expect("a file")).collect();
    for kind in HandlerKind::ALL {
        let probe = format!("{}: {{", kind.name());
        assert!(cases.contains(&probe), "tests/conformance/cases: no case with a {} probe", kind.name());
    }
}
