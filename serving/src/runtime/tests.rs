use super::*;

/// A blocking task that takes a minute must not delay the end of the command.
#[test]
fn a_blocking_task_does_not_delay_the_end() {
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
    block_on(&mut Builder::new_current_thread(), command).expect("the command succeeds");
    // This fails if the command waited for the blocking task.
    ended.send(()).expect("the blocking task is still waiting");
}

#[test]
fn connections_leave_descriptors_for_everything_else() {
    for (wanted, limit, expected) in [
        (1024, 1408, 1024),
        (1024, 1_048_576, 1024),
        (1024, u64::MAX, 1024),
        (1024, 1024, 640),
        (20_000, 4096, 3712),
        (1024, 256, 64),
        (1024, 0, 64),
        (8, 0, 8),
    ] {
        assert_eq!(connections(wanted, limit), expected, "{wanted} connections with a limit of {limit}");
    }
}
