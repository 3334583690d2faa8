use std::os::unix::fs::PermissionsExt;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Returns a file in a new folder.
fn file(name: &str) -> CacheFile {
    let folder = std::env::temp_dir().join(format!("xds-cache-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    CacheFile::new(folder.join("xds-cache"))
}

fn make_older(file: &CacheFile, age: Duration) {
    File::options().write(true).open(&file.path).unwrap().set_modified(now() - age).unwrap();
}

#[test]
fn the_age_is_the_time_since_the_last_confirmation() {
    let mut file = file("age");
    assert!(file.load("node", DAY).is_none());
    assert!(!file.confirm(), "a missing file must be stored");
    assert!(file.store(&LastGood::default().encode("node")));
    make_older(&file, Duration::from_secs(3600));
    let (_, age) = file.load("node", DAY).unwrap();
    assert!(age >= Duration::from_secs(3600));
    assert!(file.load("node", Duration::from_secs(3599)).is_none());
    assert!(file.confirm());
    assert!(file.load("node", Duration::from_secs(3599)).is_some());
    assert_eq!(fs::metadata(&file.path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn damaged_foreign_and_unsafe_files_are_ignored() {
    let mut file = file("bad");
    assert!(file.store(b"garbage"));
    assert!(file.load("node", DAY).is_none());
    assert!(file.store(&LastGood::default().encode("other")));
    assert!(file.load("node", DAY).is_none());
    assert!(file.store(&LastGood::default().encode("node")));
    fs::set_permissions(&file.path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(file.load("node", DAY).is_none());
    fs::remove_file(&file.path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file.path).unwrap();
    assert!(file.load("node", DAY).is_none());
}

#[test]
fn a_failure_leaves_the_old_file() {
    let mut file = file("failure");
    fs::create_dir_all(file.path.join("occupied")).unwrap();
    assert!(!file.store(b"x") && file.is_failing);
    fs::remove_dir_all(&file.path).unwrap();
    assert!(!file.confirm(), "what is there is not the newest configuration");
    assert!(file.store(b"x") && !file.is_failing);
    assert!(file.confirm());
}

#[test]
fn an_older_file_is_not_marked_as_confirmed() {
    let mut file = file("older");
    assert!(file.store(&LastGood::default().encode("node")));
    make_older(&file, DAY);
    let mut again = CacheFile::new(file.path.clone());
    assert!(again.load("node", DAY).is_none(), "it has expired");
    assert!(!again.confirm());
    assert!(again.load("node", DAY).is_none(), "it stays as old as it is");
}
