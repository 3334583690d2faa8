use super::*;

/// A new folder of this test, removed at its end.
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
fn the_filter_is_written_once_for_its_owner() {
    let folder = Folder::new("once");
    let state_dir = folder.0.join("a/b");
    write_filter(&state_dir).unwrap();
    let file = state_dir.join(FILTER_FILE_NAME);
    assert_eq!(fs::read(&file).unwrap(), FILTER);
    assert_eq!((mode(&state_dir), mode(&file)), (0o700, 0o600));

    let inode = fs::metadata(&file).unwrap().ino();
    write_filter(&state_dir).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), inode, "the same bytes stay where they are");

    fs::write(&file, b"half").unwrap();
    write_filter(&state_dir).unwrap();
    assert_eq!(fs::read(&file).unwrap(), FILTER);
    assert_eq!(fs::read_dir(&state_dir).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_folder_open_to_others_is_refused() {
    let folder = Folder::new("open");
    fs::create_dir_all(&folder.0).unwrap();
    fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o770)).unwrap();
    let error = write_filter(&folder.0).unwrap_err();
    assert!(matches!(error, StateDirError::Open(_, 0o770)), "{error}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn what_is_no_folder_is_named() {
    let error = write_filter(Path::new("/dev/null/state")).unwrap_err().to_string();
    assert!(error.starts_with("/dev/null/state: "), "{error}");
}
