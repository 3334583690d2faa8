use super::{MAX_PAIRS, parse};
use crate::transcript::{Headers, headers};

fn serialize(headers: &Headers) -> Vec<u8> {
    let size = |text: &[u8]| u32::try_from(text.len()).unwrap().to_le_bytes();
    let mut bytes = u32::try_from(headers.len()).unwrap().to_le_bytes().to_vec();
    for (name, value) in headers {
        bytes.extend([size(name), size(value)].concat());
    }
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend(text);
        bytes.push(0);
    }
    bytes
}

#[test]
fn a_map_is_read_back() {
    for map in [
        headers::<&str, &str>([]),
        headers([(":status", "200"), ("", "")]),
        headers([(&b"x"[..], &b"\xff\x00\x80"[..]), (b"x", b"again")]),
    ] {
        assert_eq!(parse(&serialize(&map)), map);
    }
}

#[test]
fn invalid_maps_are_empty() {
    let good = serialize(&headers([("name", "value")]));
    for length in 0..good.len() {
        assert_eq!(parse(&good[..length]), Headers::new(), "truncated to {length} bytes");
    }
    assert_eq!(parse(&[&good[..], b"x"].concat()), Headers::new(), "a byte too many");
    let mut without_nul = good.clone();
    *without_nul.last_mut().unwrap() = b'!';
    assert_eq!(parse(&without_nul), Headers::new(), "no NUL");
    assert_eq!(parse(&[0xff; 64]), Headers::new(), "count out of range");
    let full = vec![(b"n".to_vec(), b"v".to_vec()); MAX_PAIRS];
    assert_eq!(parse(&serialize(&full)).len(), MAX_PAIRS);
    let too_many = vec![(b"n".to_vec(), b"v".to_vec()); MAX_PAIRS + 1];
    assert_eq!(parse(&serialize(&too_many)), Headers::new(), "more pairs than Envoy reads");
}
