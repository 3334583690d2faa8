use std::os::unix::fs::PermissionsExt;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns a file in a new folder.
fn file(name: &str) -> CacheFile {
    let folder = std::env::temp_dir().join(format!("xds-cache-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    CacheFile::new(&folder)
}

#[test]
fn the_age_is_the_time_since_the_last_confirmation() {
    let file = file("age");
    assert!(file.load("node", DAY).is_none());
    assert!(file.set_age(Duration::ZERO).is_err(), "a missing file must be stored");
    file.write(&LastGood::default(), "node", HOUR).unwrap();
    let (_, age) = file.load("node", DAY).unwrap();
    assert!(age >= HOUR);
    assert!(file.load("node", Duration::from_secs(3599)).is_none());
    file.set_age(Duration::ZERO).unwrap();
    assert!(file.load("node", Duration::from_secs(3599)).is_some());
    assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn damaged_foreign_and_unsafe_files_are_ignored() {
    let file = file("bad");
    fs::write(file.path(), b"garbage").unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(file.load("node", DAY).is_none());
    let good = LastGood::default();
    file.write(&good, "other", Duration::ZERO).unwrap();
    assert!(file.load("node", DAY).is_none());
    file.write(&good, "node", Duration::ZERO).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(file.load("node", DAY).is_none());
    fs::remove_file(file.path()).unwrap();
    std::os::unix::fs::symlink("/dev/zero", file.path()).unwrap();
    assert!(file.load("node", DAY).is_none());
}

#[test]
fn a_failure_leaves_the_old_file_and_nothing_else() {
    let file = file("failure");
    fs::create_dir_all(file.path().join("occupied")).unwrap();
    assert!(file.write(&LastGood::default(), "node", Duration::ZERO).is_err());
    assert!(file.path().join("occupied").is_dir() && !file.partial.exists());
    fs::remove_dir_all(file.path()).unwrap();
    // A part of an earlier file does not prevent the next one.
    fs::write(&file.partial, "part").unwrap();
    file.write(&LastGood::default(), "node", Duration::ZERO).unwrap();
    assert!(file.load("node", DAY).is_some() && !file.partial.exists());
}
