use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Directory of one test, which is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(format!("/tmp/app-health-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn the_filter_is_written_once() {
    let folder = Folder::new("once");
    let state_dir = folder.0.join("a/b");
    write_filter(&state_dir, &WASM).unwrap();
    let file = state_dir.join(WASM.file_name);
    assert_eq!(fs::read(&file).unwrap(), WASM.bytes());
    assert_eq!((mode(&state_dir), mode(&file)), (0o700, 0o600));

    let inode = fs::metadata(&file).unwrap().ino();
    write_filter(&state_dir, &WASM).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "a file with the same bytes is not replaced");

    fs::write(&file, b"half").unwrap();
    write_filter(&state_dir, &WASM).unwrap();
    assert_eq!(fs::read(&file).unwrap(), WASM.bytes());
    assert_eq!(fs::read_dir(&state_dir).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn a_directory_writable_by_others_is_rejected() {
    let folder = Folder::new("open");
    fs::create_dir_all(&folder.0).unwrap();
    fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o770)).unwrap();
    let error = write_filter(&folder.0, &WASM).unwrap_err();
    assert!(matches!(error, StateDirError::WritableByOthers(_, 0o770)), "{error}");
    assert!(error.to_string().contains("set --state-dir to a subdirectory"), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn a_directory_is_created_without_a_filter() {
    let folder = Folder::new("bare");
    create(&folder.0.join("a")).unwrap();
    create(&folder.0.join("a")).unwrap();
    assert_eq!(mode(&folder.0.join("a")), 0o700);
    assert_eq!(fs::read_dir(folder.0.join("a")).unwrap().count(), 0);
}

#[test]
fn a_filter_that_is_writable_by_others_is_replaced() {
    let folder = Folder::new("changed");
    write_filter(&folder.0, &WASM).unwrap();
    let file = folder.0.join(WASM.file_name);
    fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    write_filter(&folder.0, &WASM).unwrap();
    assert_eq!(mode(&file), 0o600);

    let elsewhere = folder.0.join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    write_filter(&folder.0, &WASM).unwrap();
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "a link is replaced");
}

#[test]
fn trusted_owners() {
    for (owner, user, expected) in
        [(0, 0, true), (0, 1337, true), (1337, 1337, true), (1000, 1337, false), (1337, 0, false)]
    {
        assert_eq!(trusted_owner(owner, user), expected, "{owner} {user}");
    }
}

/// Only root can change the owner, so without root the test above must suffice.
#[test]
fn a_directory_of_another_user_is_rejected() {
    let folder = Folder::new("foreign");
    fs::create_dir_all(&folder.0).unwrap();
    if std::os::unix::fs::chown(&folder.0, Some(12345), None).is_err() {
        return;
    }
    let error = write_filter(&folder.0, &WASM).unwrap_err();
    assert!(matches!(error, StateDirError::WrongOwner { owner: 12345, .. }), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn a_file_in_place_of_the_directory_is_named() {
    let error = write_filter(Path::new("/dev/null/state"), &WASM).unwrap_err().to_string();
    assert!(error.starts_with("/dev/null/state: "), "{error}");
}
