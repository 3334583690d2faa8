use std::time::Duration;

use super::*;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const HOSTILE: &str = "</td><script>alert(1)</script>&\"'\u{202e}\u{0}";

#[test]
fn text_cannot_become_markup() {
    assert_eq!(
        escape(HOSTILE),
        "&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}"
    );
}

/// Every kind of cell, and the note, with hostile text.
#[test]
fn tables_escape_every_text() {
    let results = vec![(HOSTILE.to_owned(), 3, false), ("ok".to_owned(), 1, true)];
    let cells = vec![
        Cell::text(HOSTILE),
        Cell::status(Tone::Bad, HOSTILE),
        Cell::At { at: Duration::from_secs(5) },
        Cell::Results { results },
    ];
    let table = Table {
        id: "probes",
        caption: "Probes",
        note: HOSTILE.to_owned(),
        columns: &["a", "b", "c", "d"],
        rows: vec![cells],
    };
    let html = render(&table, Duration::from_secs(70));
    assert!(!html.contains("<script"), "{html}");
    assert_eq!(html.matches("&lt;script&gt;").count(), 4, "{html}");
    assert!(html.contains("<td>1 min 5 s</td>"), "{html}");
    assert!(html.contains(" ×3, ok ×1</td>"), "{html}");
    assert!(html.contains("<th scope=\"row\">") && html.contains("<th scope=\"col\">a</th>"), "{html}");
}

#[test]
fn requests_of_other_sites_are_recognized() {
    for (site, expected) in [
        (None, true),
        (Some("same-origin"), true),
        (Some("none"), true),
        (Some("cross-site"), false),
        (Some("same-site"), false),
    ] {
        let mut headers = HeaderMap::new();
        if let Some(site) = site {
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
        }
        assert_eq!(is_same_origin(&headers), expected, "{site:?}");
    }
}

async fn next(response: &mut Response) -> Option<Bytes> {
    response.body_mut().frame().await.map(|frame| frame.expect("no error").into_data().expect("data"))
}

#[tokio::test(start_paused = true)]
async fn a_stream_sends_the_newest_event_and_ends_when_the_server_closes() {
    let streams = EventStreams::new(1);
    let (sender, receiver) = watch::channel(Bytes::new());
    let closing = CancellationToken::new();
    let mut response = streams.take().expect("a free slot").stream(Events::from(receiver), closing.clone());
    assert!(streams.take().is_none(), "the only slot is taken");
    assert_eq!(next(&mut response).await.as_deref(), Some(&b"retry: 2000\n\n"[..]));
    sender.send_replace(event("state", "{\"now\":1}"));
    let sent = next(&mut response).await;
    assert_eq!(sent.as_deref(), Some(&b"event: state\ndata: {\"now\":1}\n\n"[..]));
    let idle = next(&mut response).await;
    assert_eq!(idle.as_deref(), Some(&b": keep-alive\n\n"[..]), "after 15 s without an event");
    closing.cancel();
    assert_eq!(next(&mut response).await, None);
    while streams.take().is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_loses_its_place() {
    let streams = EventStreams::new(1);
    let (sender, receiver) = watch::channel(event("state", 0));
    let response =
        streams.take().expect("a free slot").stream(Events::from(receiver), CancellationToken::new());
    let mut number = 0;
    while streams.take().is_none() {
        number += 1;
        sender.send_replace(event("state", number));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    drop(response);
}
