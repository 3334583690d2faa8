use std::collections::BTreeSet;

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
fn the_page_has_the_status_and_the_advice_of_each_reason() {
    let page = include_str!("../../../docs/answers.md");
    let rows: BTreeSet<[String; 3]> = page
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            let [_, status, word, _, advice, _] = cells[..] else { return None };
            status
                .trim()
                .starts_with(|char: char| char.is_ascii_digit())
                .then(|| [plain(status), plain(word), plain(advice)])
        })
        .collect();
    let expected = Reason::ALL.map(|reason| {
        let status = match reason {
            Reason::Ok => "200-299".to_owned(),
            Reason::Application => "400-599, no body".to_owned(),
            _ => reason.status().to_string(),
        };
        [status, reason.word().to_owned(), of_reason(reason).to_owned()]
    });
    assert_eq!(rows, expected.into());
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
