use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufWriter, duplex};

use super::*;

const HEAD: Duration = Duration::from_secs(5);
const WITHIN: Duration = Duration::from_secs(60);

fn left(activity: &Activity) -> Option<Duration> {
    activity.deadline().map(|deadline| deadline - Instant::now())
}

#[tokio::test(start_paused = true)]
async fn a_client_has_time_for_each_head_and_between_requests() {
    for (keep_alive, after_a_byte) in [(true, HEAD), (false, WITHIN)] {
        let (mut client, server) = duplex(100);
        let activity = Activity::new(HEAD, keep_alive);
        let mut stream = Tracked::new(server, activity.clone());
        assert_eq!(left(&activity), Some(HEAD));
        // More bytes of a head give no more time.
        tokio::time::advance(HEAD / 2).await;
        client.write_all(b"a").await.unwrap();
        stream.read_u8().await.unwrap();
        assert_eq!(left(&activity), Some(HEAD / 2));
        activity.request();
        assert_eq!(left(&activity), None, "a request may take any time");
        activity.responded(WITHIN);
        assert_eq!(left(&activity), Some(WITHIN));
        client.write_all(b"b").await.unwrap();
        stream.read_u8().await.unwrap();
        assert_eq!(left(&activity), Some(after_a_byte), "{keep_alive}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_without_bytes_begins_no_head() {
    let (client, server) = duplex(100);
    let activity = Activity::new(HEAD, true);
    activity.responded(WITHIN);
    drop(client);
    let mut stream = Tracked::new(server, activity.clone());
    assert_eq!((stream.read(&mut [0; 1]).await.unwrap(), left(&activity)), (0, Some(WITHIN)));
}

#[tokio::test]
async fn writes_are_flushed_and_shut_down() {
    let (mut client, server) = duplex(100);
    let mut stream = Tracked::new(BufWriter::new(server), Activity::new(HEAD, true));
    stream.write_all(b"a").await.unwrap();
    stream.flush().await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'a');
    stream.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0, "the end of the stream");
}
