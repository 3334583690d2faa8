//! Measures when the browser paints a page for the first time.

use std::net::{Ipv4Addr, SocketAddr};

use browser_tests::browser::Browser;
use kit::app::{App, switched};
use kit::report::{Row, median, quantile};

const FIRST_PAINT: &str = "performance.getEntriesByName('first-paint')[0]?.startTime ?? null";

pub(crate) async fn measure(browser: &Browser, url: &str, loads: u32) -> Vec<Row> {
    let page = "<!doctype html><title>word</title><link rel=icon href=data:,>word";
    let any_port = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let word = App::routes(any_port, None, |_| switched::text("200 OK", "text/html", page)).await;
    let word_url = format!("http://{}/", word.address);
    let (mut agent, mut baseline) = (Vec::new(), Vec::new());
    // The first load of each starts threads of the browser.
    for load in 0..=loads {
        for (url, times) in [(url, &mut agent), (word_url.as_str(), &mut baseline)] {
            let time = first_paint(browser, url).await;
            if load > 0 {
                times.push(time);
            }
        }
    }
    vec![
        Row::new("agent, first paint, median", median(&agent), "ms").at_most(200.0),
        Row::new("agent, first paint, slowest", quantile(&agent, 1.0), "ms"),
        Row::new("one word, first paint, median", median(&baseline), "ms"),
    ]
}

async fn first_paint(browser: &Browser, url: &str) -> f64 {
    browser.open(url).await;
    browser.until("the page is painted", &format!("({FIRST_PAINT}) !== null")).await;
    browser.value(FIRST_PAINT).await.as_f64().expect("a time")
}
