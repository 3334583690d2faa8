//! Manifests of other projects raise no error; see `testdata/real/README.md`.

use std::path::{Path, PathBuf};

use injector::skip::Skip;

use super::{options, testdata};
use crate::{Severity, lint_stream};

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|extension| extension != "md") {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn manifests_that_people_use_raise_no_error() {
    let options = options("");
    let folder = testdata().join("real");
    let readme = std::fs::read_to_string(folder.join("README.md")).expect("a README");
    let (mut projects, mut pods, mut partial) = (std::collections::BTreeSet::new(), 0, 0);
    for file in files(&folder) {
        let name = file.strip_prefix(&folder).expect("in the folder").display().to_string();
        assert!(readme.contains(&format!("| {name} |")), "{name}: its source is not in the README");
        let text = std::fs::read_to_string(&file).expect("a manifest");
        let report = lint_stream(&name, &text, &options);
        let errors: Vec<_> =
            report.findings.iter().filter(|finding| finding.rule.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:#?}");
        if name.starts_with("dashboard-chart/") {
            assert!(!report.errors.is_empty() && report.findings.is_empty(), "{name}: {report:#?}");
            continue;
        }
        assert_eq!(report.errors, [], "{name}");
        projects.insert(name.split('/').next().unwrap_or_default().to_owned());
        pods += report.pods;
        partial += report.skipped.iter().filter(|(_, skip)| matches!(skip, Skip::Partial(_))).count();
    }
    assert!(projects.len() >= 12, "{projects:?}");
    assert!(pods > 40, "{pods} Pods");
    // Three patches, and a Deployment whose selector a kustomization sets.
    assert_eq!(partial, 4);
}
