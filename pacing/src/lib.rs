//! A rate limiter and an exponential backoff, with time and randomness as arguments. This is a crate
//! of its own because both the pure crates and the binaries use it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod backoff;
mod rate_limiter;

pub use backoff::{Backoff, exponential};
pub use rate_limiter::RateLimiter;
