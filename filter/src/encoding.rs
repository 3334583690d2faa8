//! Encodes what the filter passes to Envoy: header pairs, and the filter state that carries a
//! destination.

/// Encodes header pairs as proxy-wasm ABI 0.2.1 requires: the number of pairs, the length of each
/// name and value (all as little-endian `u32`), then all names and values, each terminated by NUL.
pub fn pairs(pairs: &[(&[u8], &[u8])]) -> Vec<u8> {
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut out = Vec::new();
    out.extend_from_slice(&u32::try_from(pairs.len()).unwrap_or(u32::MAX).to_le_bytes());
    for (name, value) in pairs {
        out.extend_from_slice(&length(name));
        out.extend_from_slice(&length(value));
    }
    for (name, value) in pairs {
        for text in [name, value] {
            out.extend_from_slice(text);
            out.push(0);
        }
    }
    out
}

/// The filter state key from which an `ORIGINAL_DST` cluster takes the upstream address. Unlike a
/// header, a client cannot set it.
const DESTINATION: &str = "envoy.network.transport_socket.original_dst_address";

/// Encodes the argument of Envoy's foreign function `set_envoy_filter_state`: a protobuf message
/// with path = 1, value = 2 and span = 3, where span 1 is the downstream request. `destination` is
/// `address:port`.
pub fn destination_filter_state(destination: &str) -> Vec<u8> {
    let mut message = Vec::new();
    for (tag, text) in [(0x0a, DESTINATION), (0x12, destination)] {
        message.push(tag);
        // Both texts are shorter than 128 bytes, so the length is a single byte.
        message.push(u8::try_from(text.len()).unwrap_or(0x7f));
        message.extend_from_slice(text.as_bytes());
    }
    message.extend_from_slice(&[0x18, 1]);
    message
}

#[cfg(test)]
mod tests {
    use super::{destination_filter_state, pairs};

    #[test]
    fn pairs_are_counted_measured_and_ended() {
        let bytes = pairs(&[(b"a", b"\xff1"), (b"bc", b"")]);
        let head = [2u32, 1, 2, 2, 0].map(u32::to_le_bytes).concat();
        assert_eq!(bytes, [head.as_slice(), b"a\0\xff1\0bc\0\0"].concat());
    }

    #[test]
    fn the_longest_destination_fits_one_length_byte() {
        let longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        let message = destination_filter_state(longest);
        assert_eq!(message.len(), 2 + super::DESTINATION.len() + 2 + longest.len() + 2);
        assert!(super::DESTINATION.len() < 0x80 && longest.len() < 0x80);
        assert!(message.ends_with(&[0x18, 1]));
    }
}
