use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(format!("/tmp/app-health-agent-output-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_regular_file_is_replaced() {
    let folder = folder("regular");
    let file = folder.join("envoy.json");
    write(&file, b"1").unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let before = fs::metadata(&file).unwrap().ino();
    let still_open = fs::File::open(&file).unwrap();
    write(&file, b"2").unwrap();
    let after = fs::metadata(&file).unwrap();
    assert_ne!(after.ino(), before, "{still_open:?} is another file");
    assert_eq!((fs::read(&file).unwrap().as_slice(), after.mode() & 0o777), (b"2".as_slice(), 0o600));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn links_and_devices_are_not_replaced() {
    let folder = folder("link");
    let (link, target) = (folder.join("link"), folder.join("target"));
    symlink(&target, &link).unwrap();
    for bytes in [b"a longer text".as_slice(), b"short"] {
        write(&link, bytes).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), bytes);
    }
    let device = folder.join("device");
    symlink("/dev/null", &device).unwrap();
    write(&device, b"1").unwrap();
    assert_eq!(fs::metadata(&device).unwrap().len(), 0);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn links_at_the_temporary_name_are_not_followed() {
    let folder = folder("beside");
    let (file, precious) = (folder.join("envoy.json"), folder.join("precious"));
    fs::write(&precious, b"precious").unwrap();
    symlink(&precious, folder.join(format!("envoy.json.{}.app-health-agent", std::process::id()))).unwrap();
    write(&file, b"1").unwrap();
    assert_eq!(
        (fs::read(&file).unwrap(), fs::read(&precious).unwrap()),
        (b"1".to_vec(), b"precious".to_vec())
    );
    fs::remove_dir_all(&folder).unwrap();
}
