//! Documents name recipes and files that exist.

use crate::{files, root};

/// Every `./justw NAME` in a document names a recipe, and every file that a document links to
/// exists.
#[test]
fn documents_name_what_is_there() {
    let justfile = std::fs::read_to_string(root().join("Justfile")).expect("a Justfile");
    let is_recipe = |name: &str| {
        justfile.lines().any(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ' ']) && rest.contains(':'))
        })
    };
    for document in files(&root(), ".md") {
        let text = std::fs::read_to_string(&document).expect("a document");
        for rest in text.split("./justw ").skip(1) {
            let name: String =
                rest.chars().take_while(|char| char.is_ascii_lowercase() || *char == '-').collect();
            assert!(name.is_empty() || is_recipe(&name), "{}: ./justw {name}", document.display());
        }
        for rest in text.split("](").skip(1) {
            let link = rest.split([')', '#']).next().unwrap_or_default();
            let folder = document.parent().expect("a folder");
            let found = link.is_empty() || link.contains("://") || folder.join(link).exists();
            assert!(found, "{}: {link}", document.display());
        }
    }
}
