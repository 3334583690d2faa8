//! Addresses, URLs and networks in flags, and how a request to one fails.

mod address;
mod request_failure;

pub use address::*;
pub use request_failure::RequestFailure;
