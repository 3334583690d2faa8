//! Encodes the filter state that carries a destination.

use crate::prober_plan::DESTINATION_KEY;

/// Encodes the argument of Envoy's foreign function `set_envoy_filter_state`: a protobuf message
/// with path = 1, value = 2 and span = 3, where span 1 is the downstream request. `destination` is
/// `address:port`.
pub(super) fn destination_argument(destination: &str) -> Vec<u8> {
    let mut message = Vec::new();
    for (tag, text) in [(0x0a, DESTINATION_KEY), (0x12, destination)] {
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
    use super::{DESTINATION_KEY, destination_argument};

    #[test]
    fn the_longest_destination_fits_one_length_byte() {
        let longest = "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535";
        let message = destination_argument(longest);
        assert_eq!(message.len(), 2 + DESTINATION_KEY.len() + 2 + longest.len() + 2);
        assert!(DESTINATION_KEY.len() < 0x80 && longest.len() < 0x80);
        assert!(message.ends_with(&[0x18, 1]));
    }
}
