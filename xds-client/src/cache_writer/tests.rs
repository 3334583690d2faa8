use std::fs;
use std::path::PathBuf;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tokio::time::timeout;

use super::*;

const DAY: Duration = Duration::from_secs(24 * 3600);

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xds-writer-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
async fn a_write_replaces_the_file_and_reports_its_result() {
    let folder = folder("result");
    let file = CacheFile::new(&folder);
    let mut writer = CacheWriter::new(file.clone(), "node");
    writer.start(Write::Content, LastGood::default(), Duration::from_secs(60));
    assert_eq!(writer.finished().await.1, Ok(()));
    let (_, age) = file.load("node", DAY).unwrap();
    assert!(age >= Duration::from_secs(60));
    writer.start(Write::Age, LastGood::default(), Duration::from_secs(7200));
    assert_eq!(writer.finished().await.1, Ok(()));
    assert!(file.load("node", Duration::from_secs(7199)).is_none());
    fs::remove_dir_all(&folder).unwrap();
    writer.start(Write::Content, LastGood::default(), Duration::ZERO);
    assert!(writer.finished().await.1.unwrap_err().contains("No such file"));
}

/// Opening a pipe blocks until another process opens its other end, as a disk that does not respond.
#[tokio::test]
async fn a_write_that_blocks_does_not_block_the_thread_of_the_agent() {
    let folder = folder("blocked");
    let file = CacheFile::new(&folder);
    mkfifo(file.path(), Mode::from_bits_truncate(0o600)).unwrap();
    let mut writer = CacheWriter::new(file.clone(), "node");
    writer.start(Write::Age, LastGood::default(), Duration::ZERO);
    // This test has one thread: it only gets here, and the timeout only fires, if that is free.
    assert!(timeout(Duration::from_millis(50), writer.finished()).await.is_err());
    let path = file.path().to_owned();
    let reader = tokio::task::spawn_blocking(move || fs::File::open(path));
    assert_eq!(writer.finished().await.1, Ok(()), "the same write continues");
    reader.await.unwrap().unwrap();
}
