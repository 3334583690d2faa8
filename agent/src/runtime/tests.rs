use super::*;

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
