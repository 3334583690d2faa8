use std::collections::BTreeMap;

use super::*;

/// Removes what Markdown adds: backticks, and the addresses of links.
fn plain(cell: &str) -> String {
    let mut text = cell.replace('`', "");
    while let Some((before, rest)) = text.split_once('[') {
        let (label, rest) = rest.split_once("](").expect("a link");
        let (_, after) = rest.split_once(')').expect("the end of a link");
        text = format!("{before}{label}{after}");
    }
    text.trim().to_owned()
}

#[test]
fn advice_is_that_of_the_page() {
    let page = include_str!("../../../docs/answers.md");
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, _, word, _, advice, _] = cells[..] else { return None };
        Some((plain(word), plain(advice)))
    });
    let rows: BTreeMap<String, String> = rows.collect();
    for reason in Reason::ALL {
        assert_eq!(rows.get(reason.word()).map(String::as_str), Some(of_reason(reason)), "{reason:?}");
    }
}

#[test]
fn reasons_of_responses() {
    assert_eq!(reason_of_status(502), Reason::Refused);
    assert_eq!(reason_of_status(525), Reason::Tls);
    assert_eq!(reason_of_status(404), Reason::Application);
    assert_eq!(reason_of_status(500), Reason::Application);
    assert_eq!(reason_of_body(404, "unknown_probe: no such probe is declared"), Some(Reason::UnknownProbe));
    assert_eq!(reason_of_body(502, "unknown_probe: of another status"), None);
    assert_eq!(reason_of_body(404, ""), None);
}
