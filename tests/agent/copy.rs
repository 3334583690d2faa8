//! Tests of the command `copy`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use kit::agent;
use kit::envoy;

#[tokio::test]
async fn the_copy_is_the_same_program_and_replaces_an_older_one() {
    let folder = envoy::folder("agent-copy");
    let (path, copy) = (folder.to_str().expect("UTF-8"), folder.join("app-health-agent"));
    fs::write(&copy, "older").expect("a writable folder");
    fs::set_permissions(&copy, Permissions::from_mode(0o400)).expect("a file of ours");
    let outcome = agent::run(&["copy", path], &[]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(fs::read(&copy).expect("a file") == fs::read(agent::binary()).expect("a file"));
    assert_eq!(fs::metadata(&copy).expect("a file").permissions().mode() & 0o777, 0o755);
    let names: Vec<_> =
        fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(names, ["app-health-agent"]);
}

#[tokio::test]
async fn a_directory_that_does_not_exist_is_an_error() {
    let outcome = agent::run(&["copy", "/nonexistent"], &[]).await;
    assert_eq!(outcome.code, Some(73), "{outcome:?}");
    let expected = "/nonexistent/app-health-agent: No such file or directory";
    assert!(outcome.stderr.contains(expected), "{outcome:?}");
}
