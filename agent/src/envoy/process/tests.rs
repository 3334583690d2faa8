use super::*;

#[test]
fn flags() {
    let flags = EnvoyCommand::flags(3, Duration::from_secs(25), vec!["-l".into(), "debug".into()]);
    let expected =
        "--disable-hot-restart --concurrency 3 --drain-strategy immediate --drain-time-s 25 -l debug";
    assert_eq!(flags, expected.split(' ').map(OsString::from).collect::<Vec<_>>());
}

#[test]
fn versions() {
    let text = "\n/bin/envoy  version: 9e558/1.40.0/Clean/RELEASE/BoringSSL\n\n";
    assert_eq!(version_word(text).as_deref(), Some("1.40.0"));
    assert_eq!(version_word("sh: bad option"), None);
}

#[test]
fn the_last_words_are_one_line() {
    assert_eq!(last_words("a\n\n b\u{7}\n"), "a; b?");
    let long = format!("{}\n{}", "x".repeat(900), "y".repeat(900));
    assert_eq!(last_words(&long), "y".repeat(900));
    assert!(last_words(&"z".repeat(5000)).len() <= WORDS);
}

fn command(script: &str) -> EnvoyCommand {
    EnvoyCommand {
        binary: "/bin/sh".into(),
        launcher: None,
        configuration: vec!["-c".into(), script.into()],
        flags: Vec::new(),
        admin: LocalAddress::Unix("/nonexistent/admin.sock".into()),
    }
}

#[tokio::test]
async fn how_it_ended() {
    for (script, ended, words) in [
        ("exit 0", Ended::Code(0), "with code 0"),
        ("exit 7", Ended::Code(7), "with code 7"),
        ("kill -9 $$", Ended::Signal(9), "by SIGKILL"),
    ] {
        let found = command(script).start().unwrap().ended().await;
        assert_eq!((found, found.to_string().as_str()), (ended, words));
    }
    assert!(EnvoyCommand { binary: "/nonexistent".into(), ..command("") }.start().is_err());
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let mut process = command("sleep 1000 & wait").start().unwrap();
    process.signal(Signal::SIGTERM);
    assert_eq!(process.ended().await, Ended::Signal(15));
}

#[tokio::test]
async fn a_refusal_is_the_last_words() {
    for script in ["exit 0", "echo no memory >&2; kill -9 $$"] {
        assert_eq!(command(script).validate().unwrap().refusal().await, None, "{script}");
    }
    assert_eq!(
        command("echo no such cluster >&2; exit 1").validate().unwrap().refusal().await.as_deref(),
        Some("no such cluster")
    );
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
