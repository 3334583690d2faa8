//! Scrapes of several clients at the same time.

use std::net::SocketAddr;

use serving::http_server::{self, HttpRequest, Limits, Plaintext, Server, Stages};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::super::request::CLIENT;
use super::*;

/// Returns a response of Envoy that is larger than all buffers between it and a client, in few lines,
/// so that dozens of scrapes of it end long before their deadline, also on a busy machine.
fn large() -> &'static str {
    let padding = "x".repeat(16_000);
    let samples: String =
        (0..60).map(|number| format!("envoy_x{{padding=\"{padding}\",n=\"{number}\"}} 1\n")).collect();
    format!("HTTP/1.1 200 OK\r\n\r\n# TYPE envoy_x counter\n{samples}").leak()
}

#[tokio::test]
async fn clients_that_do_not_read_do_not_block_others() {
    let (envoy, _) = application(large(), true).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\ng 1\n", true).await;
    let scraper = scraper(Some(envoy), &[good]);
    let mut unread = Vec::new();
    for _ in 0..7 {
        unread.push(scraper.merged(&headers(&[]), "", || ()).await);
    }
    let (_, text) = scraped(&scraper, &headers(&[]), "").await;
    assert!(text.contains("app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n"), "no turn");
    assert!(text.contains(",n=\"59\"} 1\n") && text.contains("\ng 1\n"));
    assert!(unread.iter().all(|response| response.status() == 200));
}

#[tokio::test]
async fn a_slow_client_gets_everything_if_no_other_waits() {
    let (envoy, _) = application(large(), true).await;
    let scraper = scraper(Some(envoy), &[]);
    let mut body = scraper.merged(&headers(&[]), "", || ()).await.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        if text.len() < 1 << 16 {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n"), "truncated");
}

#[tokio::test]
async fn scrapes_beyond_the_limit_are_rejected() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\n", false).await;
    let scraper = scraper(None, &[hung]);
    let mut running = Vec::new();
    for _ in 0..SCRAPES {
        running.push(scraper.merged(&headers(&[]), "", || ()).await);
    }
    let one_more = scraper.merged(&headers(&[]), "", || ()).await;
    assert!(running.iter().all(|response| response.status() == 200));
    assert_eq!((one_more.status().as_u16(), &one_more.headers()[RETRY_AFTER]), (503, &"1".parse().unwrap()));
}

/// Waits until this many places are taken. The limit is far below any deadline of a scrape.
async fn until_taken(scraper: &Scraper, count: usize) {
    let taken = async {
        while scraper.slots.used() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), taken).await.expect("the places are taken, or free");
}

/// Serves the merged metrics as the agent does.
fn serve(scraper: &Scraper) -> (SocketAddr, JoinHandle<()>) {
    let listener = http_server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = scraper.metrics.servers.clone();
    let server = Server { name: "local", paths: &[], limits: Limits::ONE_REQUEST, metrics };
    let scraper = scraper.clone();
    let handler = move |request: HttpRequest| {
        let scraper = scraper.clone();
        async move {
            let slot = request.slot.clone();
            scraper.merged(&request.headers, request.query(), move || slot.evict()).await
        }
    };
    (address, tokio::spawn(http_server::serve(listener, Plaintext, server, Stages::default(), handler)))
}

async fn request(mut caller: TcpStream, client: &str) -> TcpStream {
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\n{CLIENT}: {client}\r\n\r\n");
    caller.write_all(head.as_bytes()).await.unwrap();
    caller
}

/// Starts a scrape, and reads no more than the status. With a small receive buffer, the agent soon has
/// to wait for the reader.
async fn started(address: SocketAddr, client: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut caller = request(socket.connect(address).await.unwrap(), client).await;
    let mut head = [0; 12];
    caller.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    caller
}

#[tokio::test]
async fn slow_readers_do_not_take_the_place_of_another_client() {
    let (port, _) = application(large(), true).await;
    let scraper = scraper(None, &[port]);
    let (address, serving) = serve(&scraper);
    let mut slow = Vec::new();
    for number in 0..SCRAPES {
        slow.push(started(address, ["192.0.2.1", "192.0.2.2", "2001:db8::1"][number % 3]).await);
    }
    let mut text = Vec::new();
    let honest = TcpStream::connect(address).await.unwrap();
    request(honest, "192.0.2.3").await.read_to_end(&mut text).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{}", text.lines().next().unwrap_or_default());
    let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} 1\n");
    assert!(text.contains(&line), "truncated");
    let oldest = slow[0].read_to_end(&mut Vec::new()).await;
    assert_eq!(oldest.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    serving.abort();
}

#[tokio::test]
async fn a_dropped_response_frees_its_place() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let headers = headers(&[(SCRAPE_TIMEOUT, "600")]);
    let mut running = Vec::new();
    for _ in 0..SCRAPES {
        running.push(scraper.merged(&headers, "", || ()).await);
    }
    assert_eq!(scraper.merged(&headers, "", || ()).await.status(), 503);
    drop(running.pop());
    until_taken(&scraper, SCRAPES - 1).await;
}

#[tokio::test]
async fn a_closed_connection_frees_its_place() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let (address, serving) = serve(&scraper);
    for _ in 0..3 {
        let mut callers = Vec::new();
        for _ in 0..SCRAPES {
            callers.push(started(address, "192.0.2.1").await);
        }
        until_taken(&scraper, SCRAPES).await;
        drop(callers);
        until_taken(&scraper, 0).await;
    }
    serving.abort();
}
