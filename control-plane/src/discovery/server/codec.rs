//! Encodes responses as gRPC messages with small buffers, since there are many streams and most
//! send little.

use tonic::Status;
use tonic::codec::{BufferSettings, EncodeBuf, Encoder};

use discovery::message::{Response, Variant};
use discovery::xds;

/// Initial size in bytes of a stream's encode buffer; it grows for a larger message.
const BUFFER: usize = 512;
/// Responses are combined into data frames of up to this many bytes.
const FRAME_SIZE: usize = 16 << 10;

/// gRPC encoder of discovery responses.
pub(super) struct Responses(pub(super) Variant);

impl Encoder for Responses {
    type Item = Box<Response>;
    type Error = Status;

    fn encode(&mut self, response: Box<Response>, buffer: &mut EncodeBuf) -> Result<(), Status> {
        xds::encode(*response, self.0, buffer);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, FRAME_SIZE)
    }
}
