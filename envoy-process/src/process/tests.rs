use super::*;

#[test]
fn flags() {
    let flags = EnvoyCommand::flags(3, Duration::from_secs(25), vec!["-l".into(), "debug".into()]);
    let expected =
        "--disable-hot-restart --concurrency 3 --drain-strategy immediate --drain-time-s 25 -l debug";
    assert_eq!(flags, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
}

fn metrics() -> Arc<Metrics> {
    Arc::new(Metrics::new())
}

/// Returns a command that runs a shell script instead of Envoy.
pub(crate) fn command(script: &str) -> EnvoyCommand {
    EnvoyCommand {
        binary: "/bin/sh".into(),
        launcher: None,
        record: None,
        configuration: vec!["-c".into(), script.into()],
        flags: Vec::new(),
        validate_first: false,
        log_format: LogFormat::Text,
        admin: LocalAddress::Unix("/nonexistent/admin.sock".into()),
    }
}

#[tokio::test]
async fn exit_reasons() {
    for (script, ended, words) in [
        ("exit 0", ExitReason::Code(0), "with code 0"),
        ("exit 7", ExitReason::Code(7), "with code 7"),
        ("kill -9 $$", ExitReason::Signal(9), "terminated by SIGKILL"),
    ] {
        let found = command(script).start(&metrics()).unwrap().wait().await;
        assert_eq!((found, found.to_string().as_str()), (ended, words));
    }
    assert!(EnvoyCommand { binary: "/nonexistent".into(), ..command("") }.start(&metrics()).is_err());
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let mut process = command("sleep 1000 & wait").start(&metrics()).unwrap();
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().await, ExitReason::Signal(15));
}

#[tokio::test]
async fn a_group_exists_until_all_its_processes_are_killed() {
    let mut process = command("sleep 1000 & exit 0").start(&metrics()).unwrap();
    assert_eq!(process.wait().await, ExitReason::Code(0));
    assert!(process.has_group());
    process.signal(Signal::SIGKILL);
    let mut alone = command("exit 0").start(&metrics()).unwrap();
    alone.wait().await;
    assert!(!alone.has_group());
}

#[test]
fn only_a_socket_is_removed() {
    let folder = std::env::temp_dir().join(format!("agent-process-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (socket, file) = (folder.join("s"), folder.join("f"));
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    std::fs::write(&file, "").unwrap();
    for path in [&socket, &file, &folder.join("none")] {
        remove_socket(path).unwrap();
    }
    assert!(!socket.exists() && file.exists());
    std::fs::remove_dir_all(&folder).unwrap();
}
