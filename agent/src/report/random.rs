//! Random values from the operating system's generator.

use std::fmt::Write as _;

/// Returns a number in the range 0..1.
pub(super) fn number() -> f64 {
    f64::from(u32::from_be_bytes(bytes())) / 2f64.powi(32)
}

/// Returns a new identifier for this process: 32 hexadecimal digits.
pub(super) fn epoch() -> String {
    bytes::<16>().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.secure_random.fill(&mut bytes).expect("the operating system provides random bytes");
    bytes
}
