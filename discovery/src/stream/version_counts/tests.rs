use super::*;

fn check(version: &str, names: &[&str], expected: &[u32]) {
    let names: Vec<Arc<str>> = names.iter().copied().map(Arc::from).collect();
    let found: Vec<u32> = decode(version, names.iter()).into_values().collect();
    assert_eq!(found, expected, "{version}");
}

#[test]
fn version_counts_round_trip() {
    assert_eq!(encode(&[3, 0, 12]), "3.0.12");
    assert_eq!(encode(&[7; 129]), "m7");
    check("ab-3.0.12", &["a", "b", "c"], &[3, 0, 12]);
    // The names are not those of the version, so each gets the largest number.
    check("ab-3.0.12", &["a", "b"], &[12, 12]);
    check("ab-m7", &["a"], &[7]);
    // Versions of other servers.
    check("v42", &["a"], &[]);
    check("2026-01-02", &["a"], &[0]);
    check("ab-x", &["a"], &[0]);
}
