//! The system's randomness.

use std::fmt::Write as _;

/// In 0..1.
pub(super) fn number() -> f64 {
    f64::from(u32::from_be_bytes(bytes())) / 2f64.powi(32)
}

/// A name for this process, 32 hexadecimal digits.
pub(super) fn epoch() -> String {
    bytes::<16>().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).expect("the system has randomness");
    bytes
}
