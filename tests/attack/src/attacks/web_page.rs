//! Requests that a web page of another site makes a browser send to a local port: across origins, and
//! after the name of the site was changed to this address (DNS rebinding).

use std::net::SocketAddr;

use super::get;
use crate::addresses;
use crate::honest::HonestClient;
use crate::request::Expectation;

/// The row of these requests, each of which must be refused.
const ROW: &str = "requests of web pages";
const FORBIDDEN: u16 = 403;

/// Returns what a page sends for each method and path.
pub(super) fn requests(address: SocketAddr, targets: &[(&str, &str)]) -> Vec<HonestClient> {
    let heads = [
        // Across origins: a form, and `fetch` without CORS.
        "Host: localhost\r\nOrigin: https://attack.example\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
        // After rebinding, the page has the same origin as the port.
        "Host: attack.example\r\nOrigin: http://attack.example\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: attack.example\r\n",
    ];
    let mut requests = Vec::new();
    for (method, path) in targets {
        for head in &heads {
            let mut client = get(ROW, addresses(1)[0], address, path);
            let length = if *method == "POST" { "Content-Length: 0\r\n" } else { "" };
            client.request.bytes =
                format!("{method} {path} HTTP/1.1\r\n{head}{length}Connection: close\r\n\r\n").into_bytes();
            client.request.expectation = Expectation::status(FORBIDDEN);
            requests.push(client);
        }
    }
    requests
}
