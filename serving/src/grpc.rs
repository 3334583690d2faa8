//! gRPC messages in HTTP/2 bodies. Messages stay encoded; a large one is neither copied as a whole nor decoded.

mod body;
mod flow;
mod messages;

pub use body::{MessageBody, Parts, encoded, parts};
pub use flow::Flow;
pub use messages::{IncompleteLimits, Messages};

/// Length of the header of a message: a compression flag, and the message length in four bytes.
const HEADER_LENGTH: usize = 5;
