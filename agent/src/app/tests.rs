use super::*;

#[tokio::test]
async fn a_part_that_ends_is_noticed_and_named() {
    let mut ended = tokio::spawn(async {});
    let mut panicked = tokio::spawn(async { panic!("no such number") });
    for (task, words) in [(&mut ended, "ended by itself"), (&mut panicked, "no such number")] {
        let failure = unasked("readiness server", task).await;
        assert_eq!(failure.code(), 1);
        let text = failure.to_string();
        assert!(text.starts_with("readiness server: ") && text.contains(words), "{text}");
    }
}

/// What blocks ends after a minute; the command must not wait for that.
#[test]
fn a_command_ends_whatever_its_resolver_does() {
    let (started, has_started) = std::sync::mpsc::channel();
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let command = async move {
        tokio::task::spawn_blocking(move || {
            started.send(()).expect("the test waits");
            has_ended.recv_timeout(std::time::Duration::from_secs(60))
        });
        has_started.recv().expect("a thread of the runtime");
        Ok(())
    };
    block_on(command).expect("nothing fails");
    // Nobody would hear it if the command had waited for the end.
    ended.send(()).expect("still blocked");
}
