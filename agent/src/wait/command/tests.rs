use super::*;

#[test]
fn commands_are_found_as_execvp_finds_them() {
    let code = |command: &str, path: &str| {
        look_up(command.as_ref(), path.as_ref()).map_err(|failure| failure.code())
    };
    assert_eq!(code("sh", "/nonexistent:/bin"), Ok(()));
    assert_eq!(code("/bin/sh", ""), Ok(()));
    assert_eq!(code("sh", "/nonexistent"), Err(127));
    assert_eq!(code("./no-such-command", "/bin"), Err(127));
    assert_eq!(code("/etc/passwd", ""), Err(126));
    assert_eq!(code("passwd", "/etc"), Err(126));
    assert_eq!(code("/bin", ""), Err(126), "a directory");
}

#[test]
fn no_command_is_none() {
    assert!(exec(&[]).is_ok());
    let failure = exec(&["/etc/passwd".into()]).unwrap_err();
    assert_eq!(failure.code(), 126, "{failure}");
}
