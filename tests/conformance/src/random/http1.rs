//! Generates HTTP/1 responses: most are valid, some have one error, and they are sent in pieces and
//! end in various ways.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::bytes::Bytes;
use crate::case::Step;

const STATUSES: &[u16] =
    &[200, 200, 200, 204, 206, 301, 302, 303, 304, 307, 308, 300, 400, 404, 500, 503, 101, 599];
const HEADERS: &[&str] = &[
    "Content-Type: text/plain",
    "Server: nginx",
    "Date: Fri, 20 Nov 2026 00:00:00 GMT",
    "Connection: close",
    "Connection: keep-alive",
    "Keep-Alive: timeout=5",
    "Set-Cookie: a=b; Path=/",
    "Set-Cookie: c=d",
    "X-Empty:",
    "X: a b",
    "Content-Encoding: gzip",
    "ETag: \"x\"",
    "Retry-After: 1",
    "WWW-Authenticate: Basic realm=\"x\"",
    "Vary: *",
    "x-lower: 1",
    "X-Obs: \u{e9}\u{ff}",
    "X-Tab: a\tb",
    "X-Pad:   a  ",
    "X_Under: 1",
    "Allow: GET",
    "Via: 1.1 a",
    "X-Envoy-Upstream-Service-Time: 3",
    "X-Envoy-Immediate-Health-Check-Fail: 1",
    "X-Envoy-Overloaded: true",
    "X-App-Health-Kind: tcp",
    "Grpc-Status: 2",
    "Alt-Svc: h3=\":443\"",
    "Strict-Transport-Security: max-age=1",
    "Proxy-Connection: close",
    "TE: trailers",
    "Content-Language: en",
    "Cache-Control: no-store",
    "Link: </x>; rel=next",
];
const LOCATIONS: &[&str] = &[
    "/next",
    "next",
    "?q=1",
    "",
    "#f",
    "/a%20b",
    "http://{address}/next",
    "http://{ip}/next",
    "http://other.example/",
    "https://other.example/",
    "//other.example/x",
    "//{address}/x",
    "HTTP://{address}/U",
    "ftp://{address}/",
    "mailto:a",
    "http://{ip}:{other}/next",
    "https://{ip}:{secure}/next",
    "http://{ip}:{shut}/next",
    "http://{ip}:{secure}/",
    "https://{ip}:{other}/",
    "http://{ip}:15020/",
    "http://shop.example.com/next",
    "http://SHOP.example.com:{port}/",
    "http://{address}:99/",
    "/%zz",
    "http://[::1/",
    "http://u:p@{address}/next",
    "/../..",
    "http://{address}",
];
const SIZES: &[usize] = &[0, 1, 2, 100, 2047, 2048, 2049, 4096, 10_239, 10_240, 10_241, 16_384, 70_000];

/// Generates one or more responses, one for each connection.
pub(super) fn scripts() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop_oneof![
        8 => script().prop_map(|script| vec![script]),
        2 => prop::collection::vec(script(), 2..4),
    ]
}

#[derive(Clone, Debug)]
struct Head {
    interim: Vec<u16>,
    version: &'static str,
    status: u16,
    reason: &'static str,
    headers: Vec<&'static str>,
    location: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Nothing,
    Exact,
    /// Declares this number of bytes more than it sends.
    Short(usize),
    /// Declares this number of bytes fewer than it sends.
    Long(usize),
    Chunked,
    /// Chunked, with an extension and a trailer.
    Trailed,
    /// Chunked, and ends before the last chunk.
    Cut,
}

fn head() -> impl Strategy<Value = Head> {
    let status = prop_oneof![3 => select(STATUSES), 1 => 100_u16..600];
    let interim = prop_oneof![
        12 => Just(Vec::new()),
        1 => prop::collection::vec(select(&[100_u16, 102, 103][..]), 1..7),
    ];
    let version = prop_oneof![9 => Just("HTTP/1.1"), 1 => Just("HTTP/1.0")];
    let reason = select(&["OK", "", "Not Found", "\u{e9}", "a b c"][..]);
    let headers = prop::collection::vec(select(HEADERS), 0..5);
    let location = prop::option::weighted(0.6, select(LOCATIONS));
    (interim, version, status, reason, headers, location).prop_map(
        |(interim, version, status, reason, headers, location)| Head {
            interim,
            version,
            status,
            reason,
            headers,
            location: location.filter(|_| (300..400).contains(&status)),
        },
    )
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        8 => Just(Framing::Exact),
        3 => Just(Framing::Nothing),
        1 => (1_usize..3000).prop_map(Framing::Short),
        1 => (1_usize..100).prop_map(Framing::Long),
        4 => Just(Framing::Chunked),
        1 => Just(Framing::Trailed),
        1 => Just(Framing::Cut),
    ]
}

/// Returns an empty response with status 200.
pub(super) fn plain_success() -> Vec<Step> {
    vec![Step::Read, Step::Write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".into())]
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let answer =
        (head(), framing(), select(SIZES)).prop_map(|(head, framing, size)| bytes(&head, framing, size));
    let changed = prop_oneof![8 => Just(None), 1 => any::<(Index, Change)>().prop_map(Some)];
    let cuts =
        prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec((any::<Index>(), 0_u64..30), 1..3)];
    let end = prop_oneof![
        20 => Just(None),
        2 => Just(Some(Step::Reset)),
        2 => Just(Some(Step::Close)),
        2 => Just(Some(Step::Write("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".into()))),
        1 => Just(Some(Step::Hang)),
    ];
    let reads = prop::bool::weighted(0.97);
    (answer, changed, cuts, end, reads).prop_map(|(mut answer, changed, cuts, end, reads)| {
        if let Some((place, change)) = changed {
            change.apply(&mut answer, place);
        }
        let mut steps = if reads { vec![Step::Read] } else { Vec::new() };
        steps.extend(pieces(&answer, &cuts));
        steps.extend(end);
        steps
    })
}

/// An error in one byte of the head.
#[derive(Clone, Copy, Debug, proptest_derive::Arbitrary)]
enum Change {
    Insert(u8),
    Replace(u8),
    Remove,
    Cut,
}

impl Change {
    fn apply(self, answer: &mut Vec<u8>, place: Index) {
        let head =
            answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
        let place = place.index(head.max(1));
        match self {
            Self::Insert(byte) => answer.insert(place, byte),
            Self::Replace(byte) => answer[place] = byte,
            Self::Remove => drop(answer.remove(place)),
            Self::Cut => answer.truncate(place),
        }
    }
}

fn bytes(head: &Head, framing: Framing, size: usize) -> Vec<u8> {
    let mut text: String =
        head.interim.iter().map(|status| format!("HTTP/1.1 {status} Soon\r\n\r\n")).collect();
    text += &format!("{} {} {}\r\n", head.version, head.status, head.reason);
    for header in &head.headers {
        text += &format!("{header}\r\n");
    }
    if let Some(location) = head.location {
        text += &format!("Location: {location}\r\n");
    }
    let (declared, body) = match framing {
        Framing::Nothing => (None, vec![b'x'; size]),
        Framing::Exact => (Some(size), vec![b'x'; size]),
        Framing::Short(missing) => (Some(size + missing), vec![b'x'; size]),
        Framing::Long(more) => (Some(size.saturating_sub(more)), vec![b'x'; size]),
        Framing::Chunked | Framing::Trailed | Framing::Cut => {
            text += "Transfer-Encoding: chunked\r\n";
            let (extension, end) = match framing {
                Framing::Cut => ("", ""),
                Framing::Trailed => (";a=b", "0;c\r\nX-Trailer: 1\r\n\r\n"),
                _ => ("", "0\r\n\r\n"),
            };
            let chunk =
                |part: &[u8]| [format!("{:x}{extension}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
            let chunks: Vec<u8> = vec![b'x'; size].chunks(3000).flat_map(chunk).collect();
            (None, [chunks, end.into()].concat())
        }
    };
    if let Some(declared) = declared {
        text += &format!("Content-Length: {declared}\r\n");
    }
    [Bytes::from(format!("{text}\r\n").as_str()).0, body].concat()
}

/// Splits the bytes, with pauses between the pieces.
fn pieces(answer: &[u8], cuts: &[(Index, u64)]) -> Vec<Step> {
    let mut placeholders: Vec<(usize, u64)> =
        cuts.iter().map(|(place, wait)| (place.index(answer.len().max(1)), *wait)).collect();
    placeholders.sort_unstable();
    let (mut steps, mut from) = (Vec::new(), 0);
    for (place, wait) in placeholders {
        steps.push(Step::Write(Bytes(answer[from..place].to_vec())));
        steps.push(Step::Wait(wait));
        from = place;
    }
    steps.push(Step::Write(Bytes(answer[from..].to_vec())));
    steps
}
