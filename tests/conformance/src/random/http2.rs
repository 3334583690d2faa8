//! Generates HTTP/2 responses, frame by frame.

use proptest::prelude::*;
use proptest::sample::select;

use crate::bytes::Bytes;
use crate::case::Step;

const FIELDS: &[(&str, &str)] = &[
    ("content-type", "text/plain"),
    ("server", "h2o"),
    ("set-cookie", "a=b"),
    ("x-empty", ""),
    ("x-obs", "\u{e9}"),
    ("content-encoding", "gzip"),
    ("x_under", "1"),
    ("x-envoy-overloaded", "true"),
    ("grpc-status", "2"),
    ("te", "trailers"),
    ("connection", "close"),
    ("X-Upper", "1"),
    ("x bad", "1"),
    ("vary", "*"),
    ("content-length", "2"),
];
const LOCATIONS: &[&str] =
    &["/next", "https://{address}/next", "http://{address}/", "https://other.example/", ""];

/// Generates one or two responses, one for each connection.
pub(super) fn scripts() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop_oneof![6 => script().prop_map(|script| vec![script]), 1 => prop::collection::vec(script(), 2..3)]
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let status = prop_oneof![
        3 => select(&[200_u16, 200, 204, 302, 307, 404, 500, 503][..]),
        1 => 100_u16..600,
    ];
    let interim = prop_oneof![9 => Just(None), 1 => select(&[100_u16, 103][..]).prop_map(Some)];
    let fields = prop::collection::vec(select(FIELDS), 0..4);
    let location = prop::option::weighted(0.6, select(LOCATIONS));
    let data = prop::collection::vec(select(&[0_usize, 2, 2, 100, 2048, 10_240, 16_384][..]), 0..4);
    let trailers = prop::bool::weighted(0.15);
    (status, interim, fields, location, data, trailers, end()).prop_map(
        |(status, interim, fields, location, data, trailers, end)| {
            let mut steps = vec![Step::Settings(Vec::new()), Step::Request];
            steps.extend(interim.map(|status| headers(&status.to_string(), &[], false)));
            let mut fields = fields;
            if let Some(location) = location.filter(|_| (300..400).contains(&status)) {
                fields.push(("location", location));
            }
            let alone = data.is_empty() && !trailers && end.is_none();
            steps.push(headers(&status.to_string(), &fields, alone));
            let last = data.len();
            for (index, size) in data.into_iter().enumerate() {
                let ends = index + 1 == last && !trailers && end.is_none();
                steps.push(Step::Data { bytes: Bytes(vec![b'x'; size]), end: ends });
            }
            if trailers && end.is_none() {
                steps.push(Step::Headers { fields: vec![("x-trailer".into(), "1".into())], end: true });
            }
            steps.extend(end);
            steps
        },
    )
}

/// Generates a step that replaces the end of the stream.
pub(super) fn end() -> impl Strategy<Value = Option<Step>> {
    prop_oneof![
        16 => Just(None),
        1 => (0_u32..14).prop_map(|code| Some(Step::ResetStream(code))),
        1 => (select(&[0_u32, 1, 3][..]), 0_u32..3).prop_map(|(last, code)| Some(Step::GoAway { last, code })),
        1 => (0_u8..12, any::<u8>(), prop::option::of(0_u32..4), prop::collection::vec(any::<u8>(), 0..20)).prop_map(
            |(kind, flags, stream, bytes)| Some(Step::Frame { kind, flags, stream, bytes: Bytes(bytes) }),
        ),
        1 => Just(Some(Step::Reset)),
        1 => Just(Some(Step::Close)),
        1 => Just(Some(Step::Hang)),
    ]
}

/// Returns HEADERS with a status and these fields.
pub(super) fn headers(status: &str, fields: &[(&str, &str)], end: bool) -> Step {
    let fields = [(":status", status)].into_iter().chain(fields.iter().copied());
    Step::Headers { fields: fields.map(|(name, value)| (name.into(), value.into())).collect(), end }
}
