//! gRPC messages as bytes, in small buffers: most streams say little, and there are many of them.

use bytes::{Buf, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::discovery::message::{Response, Variant};
use crate::xds;

/// What a stream keeps for messages in either direction; it grows with a larger one.
const BUFFER: usize = 512;
/// So much of several answers goes out as one piece.
const PIECE: usize = 16 << 10;

/// Requests, unread.
pub(super) struct Requests;

impl Decoder for Requests {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf) -> Result<Option<Bytes>, Status> {
        let length = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(length)))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, PIECE)
    }
}

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
