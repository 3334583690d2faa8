//! Answers as gRPC messages, in small buffers: most streams say little, and there are many of them.

use tonic::Status;
use tonic::codec::{BufferSettings, EncodeBuf, Encoder};

use discovery::message::{Response, Variant};
use discovery::xds;

/// What a stream keeps for messages; it grows with a larger one.
const BUFFER: usize = 512;
/// So much of several answers goes out as one piece.
const PIECE: usize = 16 << 10;

/// Answers.
pub(super) struct Responses(pub(super) Variant);

impl Encoder for Responses {
    type Item = Box<Response>;
    type Error = Status;

    fn encode(&mut self, response: Box<Response>, buffer: &mut EncodeBuf) -> Result<(), Status> {
        xds::write(*response, self.0, buffer);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, PIECE)
    }
}
