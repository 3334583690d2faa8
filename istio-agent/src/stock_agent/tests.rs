use std::os::unix::fs::symlink;

use super::*;

#[test]
fn the_version_is_read() {
    assert_eq!(parse_version("client version: 1.31.0\n").as_deref(), Some("1.31.0"));
    let logged = "2026-11-28T03:48:04.418464Z\twarn\tOS CA Cert could not be found for agent\nclient version: 1.31.0\n";
    assert_eq!(parse_version(logged).as_deref(), Some("1.31.0"));
    assert_eq!(parse_version("client version: \n"), None);
    assert_eq!(parse_version("Error: no such command\n"), None);
    assert_eq!(parse_version(""), None);
}

/// A container in which our program has the name of Istio's agent still finds that one.
#[test]
fn another_program_of_the_name_is_found() {
    let folder = std::env::temp_dir().join(format!("istio-stock-agent-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let [ours, stock, empty] = ["ours", "stock", "empty"].map(|name| folder.join(name));
    for folder in [&ours, &stock, &empty] {
        fs::create_dir_all(folder).unwrap();
    }
    symlink(SELF, ours.join(NAME)).unwrap();
    symlink("/bin/sh", stock.join(NAME)).unwrap();
    let path = std::env::join_paths([&empty, &ours, &stock]).unwrap();
    assert_eq!(find(None, &path), Ok(stock.join(NAME)));
    assert_eq!(find(Some(Path::new("/bin/sh")), &path), Ok(PathBuf::from("/bin/sh")));
    assert!(
        find(Some(&ours.join(NAME)), &path).unwrap_err().ends_with("not a program that is Istio's agent")
    );
    let path = std::env::join_paths([&empty, &ours]).unwrap();
    assert!(find(None, &path).unwrap_err().contains("set APP_HEALTH_STOCK_AGENT"));
}
