use std::time::Duration;

use super::*;

#[tokio::test]
async fn a_stream_and_its_end() {
    let started = Instant::now();
    let at = started + Duration::from_secs(5);
    let mut status = StreamStatus {
        connected: Some(("10.0.0.1:15012".to_owned(), at)),
        session: Some(4),
        acknowledged: Some(("e/2".to_owned(), at)),
        nothing_to_report: false,
        error: None,
    };
    let rows = stream_table(&status, started).rows;
    assert_eq!(rows[0][1], Cell::status(Tone::Good, "connected to 10.0.0.1:15012"));
    assert_eq!(rows[1][1], Cell::At { at: Duration::from_secs(5) });
    assert_eq!(rows[2][1], Cell::text("4"));
    assert_eq!(rows[3][1], Cell::text("e/2"));
    (status.connected, status.error) = (None, Some("refused".to_owned()));
    let rows = stream_table(&status, started).rows;
    assert_eq!(rows[0][1], Cell::status(Tone::Bad, "not connected"));
    assert_eq!(rows.last().map(|row| row[1].clone()), Some(Cell::status(Tone::Bad, "refused")));
}
