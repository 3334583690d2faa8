//! `GET /stats/prometheus` on port 15090: Envoy's own metrics. Unlike a listener of Envoy, this server limits
//! what one client may use.

use hyper::Method;
use serving::http_server::{HttpRequest, Response, not_allowed, not_found};

use scrape::Scraper;

pub const PATH: &str = "/stats/prometheus";

pub async fn answer(scraper: Scraper, request: HttpRequest) -> Response {
    if request.path() != PATH {
        return not_found();
    }
    if request.method != Method::GET {
        return not_allowed("GET");
    }
    let slot = request.slot.clone();
    scraper.envoy(request.peer.source(), &request.headers, request.query(), move || slot.evict()).await
}
