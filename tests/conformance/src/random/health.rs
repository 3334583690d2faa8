//! Generates responses of gRPC health servers.

use proptest::prelude::*;
use proptest::sample::select;

use super::http2;
use crate::bytes::Bytes;
use crate::case::Step;

const CONTENT_TYPES: &[&str] = &[
    "application/grpc",
    "application/grpc",
    "application/grpc",
    "application/grpc",
    "application/grpc+proto",
    "application/grpc;charset=utf-8",
    "application/grpc-web",
    "application/json",
    "text/html",
    "Application/GRPC",
    "",
];
const FIELDS: &[(&str, &str)] = &[
    ("server", "grpc"),
    ("grpc-encoding", "identity"),
    ("grpc-encoding", "gzip"),
    ("grpc-accept-encoding", "gzip"),
    ("grpc-status", "0"),
    ("grpc-status", "5"),
    ("grpc-message", "no"),
    ("x-obs", "\u{e9}"),
    ("date", "now"),
];
const STATUSES: &[&str] = &[
    "0", "0", "0", "0", "0", "1", "2", "4", "5", "8", "12", "13", "14", "16", "17", "99", "-1", "abc", "",
    "00",
];

pub(super) fn script() -> impl Strategy<Value = Vec<Step>> {
    let status =
        prop_oneof![12 => Just(200_u16), 2 => select(&[204_u16, 302, 401, 404, 415, 500, 503, 504][..])];
    let content_type = prop_oneof![12 => select(CONTENT_TYPES).prop_map(Some), 1 => Just(None)];
    let fields = prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec(select(FIELDS), 1..3)];
    let trailers = prop_oneof![
        12 => select(STATUSES).prop_map(|status| Some(vec![("grpc-status", status)])),
        2 => Just(Some(vec![("grpc-status", "0"), ("grpc-message", "all %20 well")])),
        1 => Just(Some(vec![("x-only", "1")])),
        1 => Just(None),
    ];
    let data = prop_oneof![12 => data(), 1 => Just(Vec::new())];
    (status, content_type, fields, data, trailers, http2::end()).prop_map(
        |(status, content_type, mut fields, data, trailers, end)| {
            fields.splice(0..0, content_type.map(|content_type| ("content-type", content_type)));
            let mut steps = vec![Step::Settings(Vec::new()), Step::Request];
            let alone = data.is_empty() && trailers.is_none() && end.is_none();
            steps.push(http2::headers(&status.to_string(), &fields, alone));
            let last = data.len();
            for (index, bytes) in data.into_iter().enumerate() {
                let ends = index + 1 == last && trailers.is_none() && end.is_none();
                steps.push(Step::Data { bytes: Bytes(bytes), end: ends });
            }
            if let Some(trailers) = trailers.filter(|_| end.is_none()) {
                let fields = trailers.into_iter().map(|(name, value)| (name.into(), value.into()));
                steps.push(Step::Headers { fields: fields.collect(), end: true });
            }
            steps.extend(end);
            steps
        },
    )
}

/// Generates encoded messages, in one frame or in several.
fn data() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let message = prop_oneof![
        10 => (0_u8..5).prop_map(|status| vec![8, status]),
        1 => Just(Vec::new()),
        1 => Just(vec![8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        // A repeated status, an unknown field, a field of another wire type, a truncated field.
        1 => Just(vec![8, 2, 8, 1]),
        1 => Just(vec![0x12, 2, b'o', b'k', 8, 1]),
        1 => Just(vec![0x0a, 1, 1]),
        1 => Just(vec![8]),
        2 => prop::collection::vec(any::<u8>(), 0..12),
    ];
    let flag = prop_oneof![16 => Just(0_u8), 1 => Just(1), 1 => any::<u8>()];
    let length = prop_oneof![16 => Just(0_i64), 1 => -2_i64..20, 1 => Just(0xffff_fff0_i64)];
    let frame = (flag, length, message).prop_map(|(flag, wrong, message)| {
        let length = i64::try_from(message.len()).unwrap_or(0) + wrong;
        let length = u32::try_from(length.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX);
        [&[flag], length.to_be_bytes().as_slice(), &message].concat()
    });
    let frames = prop_oneof![12 => frame.clone().prop_map(|frame| vec![frame]), 1 => prop::collection::vec(frame, 0..3)];
    let tail = prop_oneof![16 => Just(Vec::new()), 1 => prop::collection::vec(any::<u8>(), 1..6)];
    (frames, tail, any::<prop::sample::Index>(), prop::bool::weighted(0.2)).prop_map(
        |(frames, tail, cut, split)| {
            let bytes = [frames.concat(), tail].concat();
            if !split {
                return vec![bytes];
            }
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            vec![first.to_vec(), second.to_vec()]
        },
    )
}
