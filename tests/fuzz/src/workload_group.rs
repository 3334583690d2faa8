//! Feeds arbitrary documents to the parser of WorkloadGroups.

use injector::yaml_documents;
use workload_health::workload_group::WorkloadGroup;
use workload_health::workload_probe::WorkloadProbe;

/// Parses WorkloadGroups. The probe of a valid one, written with all defaults, reads back as the same
/// probe.
///
/// # Panics
/// Panics if it does not.
pub fn workload_group(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for document in yaml_documents::read(text).into_iter().flatten() {
        let Ok(group) = WorkloadGroup::parse(&document.value) else { continue };
        let Some(probe) = group.value.probe else { continue };
        let again = WorkloadProbe::parse(&probe.to_json()).map(|checked| checked.value);
        assert_eq!(again.as_ref(), Ok(&probe), "{}", probe.to_json());
    }
}
