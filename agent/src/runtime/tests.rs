use super::*;

/// A blocking task that takes a minute must not delay the end of the command.
#[test]
fn a_command_ends_whatever_its_resolver_does() {
    let (started, has_started) = std::sync::mpsc::channel();
    let (ended, has_ended) = std::sync::mpsc::channel::<()>();
    let command = async move {
        tokio::task::spawn_blocking(move || {
            started.send(()).expect("the test is waiting");
            has_ended.recv_timeout(std::time::Duration::from_secs(60))
        });
        has_started.recv().expect("the blocking task started");
        Ok(())
    };
    block_on(command).expect("the command succeeds");
    // This fails if the command waited for the blocking task.
    ended.send(()).expect("the blocking task is still waiting");
}
