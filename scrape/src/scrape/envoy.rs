//! `GET /stats/prometheus` on the stats port: the metrics of Envoy alone, as Envoy writes them.

use hyper::header::HeaderMap;
use serving::http_server::{Body, Response, ResponseTimeout};
use serving::source::Source as Client;
use tokio::time::Instant;

use super::source::{Chunk, Source};
use super::{CHUNKS, Reader, SLACK, Scraper, response, timeout, unavailable};

impl Scraper {
    /// Returns Envoy's metrics, within the limits of [`Self::merged`]. The status is 503 if Envoy does not
    /// answer. `disconnect` is called if the response ends before its last byte, or if another client gets
    /// the slot of this scrape.
    pub async fn envoy(
        &self,
        client: Option<Client>,
        headers: &HeaderMap,
        query: &str,
        disconnect: impl FnOnce() + Send + 'static,
    ) -> Response {
        let Ok(slot) = self.slots.admit_fairly(client) else {
            return unavailable("too many scrapes are in progress\n");
        };
        let timeout = timeout(headers);
        let source = self.spawn_envoy(query, Reader::default(), Instant::now() + timeout);
        let Source { chunks: mut received, mut scrape } = source;
        let first = tokio::select! {
            first = received.recv() => first,
            () = slot.evicted() => return unavailable("too many scrapes are in progress\n"),
        };
        if first.is_none() {
            let (result, took) = scrape.result().await;
            self.record(&scrape.source, result, took);
            return unavailable("Envoy's metrics are unavailable\n");
        }
        let (chunks, body) = Body::chunks(CHUNKS);
        let scraper = self.clone();
        tokio::spawn(async move {
            let copy = async {
                while let Some(chunk) = received.recv().await {
                    if let Chunk::Data(data) = chunk
                        && chunks.send(data).await.is_err()
                    {
                        return true;
                    }
                }
                let (result, took) = scrape.result().await;
                scraper.record(&scrape.source, result, took);
                result.is_ok()
            };
            let is_over = tokio::select! {
                is_over = copy => is_over,
                () = chunks.closed() => true,
                () = slot.evicted() => false,
            };
            if !is_over {
                disconnect();
                // Without a sender, the response would end here as if it were complete.
                chunks.closed().await;
            }
        });
        let mut response = response(body);
        response.extensions_mut().insert(ResponseTimeout(timeout + SLACK));
        response
    }
}
