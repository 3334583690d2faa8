//! Documents name recipes, files and tests that exist.

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
            let is_part = |char: &char| char.is_ascii_lowercase() || char.is_ascii_digit() || *char == '-';
            let name: String = rest.chars().take_while(is_part).collect();
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

/// Every test that a document names, as `file.rs::function`, exists.
#[test]
fn documents_name_tests_that_exist() {
    let mut named = 0;
    for document in files(&root(), ".md") {
        let text = std::fs::read_to_string(&document).expect("a document");
        for word in text.split('`').filter(|word| word.contains(".rs::")) {
            let (file, name) = word.split_once("::").expect("a file and a name");
            let source = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            assert!(is_test(&source, name), "{}: {word}", document.display());
            named += 1;
        }
    }
    assert!(named > 50, "{named} tests are named");
}

/// Returns whether this source has a test of that name.
fn is_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_attribute = |line: &&&str| line.starts_with("#[");
    lines.iter().enumerate().any(|(number, line)| {
        let is_function = [format!("fn {name}("), format!("async fn {name}(")]
            .iter()
            .any(|start| line.starts_with(start.as_str()));
        let mut attributes = lines[..number].iter().rev().take_while(is_attribute);
        is_function && attributes.any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
    })
}

#[test]
fn a_name_that_is_no_test_is_found() {
    let source = "#[test]\nfn first() {}\n\nfn second() {}\n#[tokio::test]\n#[ignore]\nasync fn third() {}\n";
    assert!(is_test(source, "first") && is_test(source, "third"));
    assert!(!is_test(source, "second") && !is_test(source, "fir"));
}
