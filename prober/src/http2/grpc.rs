//! A gRPC health check and its response, by the rules of grpc-go, with which kubelet probes.

use probe::Reason;
use probe::grpc_health::{CHECK, GrpcResponse, is_grpc};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::Connection;
use super::frame::{Frame, FrameError, Headers, code, flag, kind, setting};
use super::hpack;

/// The window of a connection and of a stream before any settings.
const WINDOW: i64 = 65_535;
/// The size of a response that fits in our own windows. A health response has about ten bytes.
const MAX_RESPONSE_BYTES: usize = 65_535;

/// The call of a health check.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `address:port`.
    pub authority: &'a str,
    /// `http` or `https`.
    pub scheme: &'a str,
    pub user_agent: &'a [u8],
    /// The value of `grpc-timeout`.
    pub timeout: &'a str,
    /// The request: a length-prefixed message.
    pub message: &'a [u8],
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    pub reason: Reason,
    /// The status of gRPC; `None` if the response has none.
    pub status: Option<i32>,
}

/// How a check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// No connection could be established: grpc-go tries again after a pause, until the timeout.
    Connection(Reason),
    /// The application has not processed the call: grpc-go sends it once more on another connection.
    Unprocessed,
    Call(Reason),
}

/// Performs a check on a new connection. `is_retry` is true for the second call of a check.
///
/// # Errors
/// Says whether grpc-go tries again.
pub async fn check<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    call: Call<'_>,
    is_retry: bool,
) -> Result<Checked, Failed> {
    let mut client = Client {
        connection: Connection::new(stream, &[], 0, usize::MAX),
        stream: 1,
        max_streams: u32::MAX,
        max_header_list: u32::MAX,
        initial_window: WINDOW,
        connection_window: WINDOW,
        stream_window: 0,
        may_retry: !is_retry,
    };
    client.preface().await?;
    loop {
        match client.call(call).await {
            Err(Outcome::Refused) if client.may_retry => {
                client.may_retry = false;
                client.stream += 2;
            }
            Err(Outcome::Unprocessed) if client.may_retry => return Err(Failed::Unprocessed),
            Err(Outcome::Refused | Outcome::Unprocessed) => return Err(Failed::Call(Reason::GrpcError)),
            Err(Outcome::Failed(reason)) => return Err(Failed::Call(reason)),
            Ok(checked) => return Ok(checked),
        }
    }
}

#[derive(Debug)]
struct Client<S> {
    connection: Connection<S>,
    /// The stream of the current call.
    stream: u32,
    max_streams: u32,
    max_header_list: u32,
    initial_window: i64,
    connection_window: i64,
    stream_window: i64,
    may_retry: bool,
}

/// Why a call has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The stream was refused; the connection may be used for another one.
    Refused,
    Unprocessed,
    Failed(Reason),
}

/// A response that is read.
#[derive(Debug, Default)]
struct Response {
    /// `None` until a header block of gRPC has arrived.
    content_type: Option<Vec<u8>>,
    body: Vec<u8>,
    length: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// The first frame of the application must be its settings. grpc-go waits for it before a call.
    async fn preface(&mut self) -> Result<(), Failed> {
        match self.connection.next().await {
            Ok(Frame::Settings(settings)) => self.apply(&settings),
            Ok(Frame::SettingsAck) => {}
            Ok(_) | Err(FrameError::Connection | FrameError::Stream(_)) => {
                return Err(Failed::Connection(Reason::GrpcError));
            }
            Err(FrameError::Ended) => return Err(Failed::Connection(Reason::Closed)),
        }
        Ok(())
    }

    fn apply(&mut self, settings: &[(u16, u32)]) {
        for (id, value) in settings {
            match *id {
                setting::MAX_CONCURRENT_STREAMS => self.max_streams = *value,
                setting::MAX_HEADER_LIST_SIZE => self.max_header_list = *value,
                setting::INITIAL_WINDOW_SIZE => {
                    self.stream_window += i64::from(*value) - self.initial_window;
                    self.initial_window = i64::from(*value);
                }
                _ => {}
            }
        }
    }

    /// Sends the call as soon as the application permits a stream, and the message as soon as the windows
    /// do, and reads the response.
    async fn call(&mut self, call: Call<'_>) -> Result<Checked, Outcome> {
        let mut response = Response::default();
        while self.max_streams == 0 {
            self.next(&mut response).await?;
        }
        self.stream_window = self.initial_window;
        let (block, size) = block(call);
        if size > self.max_header_list as usize {
            return Err(Outcome::Failed(Reason::GrpcError));
        }
        self.connection.write_headers(self.stream, false, &block);
        let mut message = Some(call.message);
        loop {
            let window = self.stream_window.min(self.connection_window);
            if let Some(message) = message.take_if(|message| message.len() as i64 <= window) {
                self.connection_window -= message.len() as i64;
                self.connection.write(kind::DATA, flag::END_STREAM, self.stream, message);
            }
            if let Some(checked) = self.next(&mut response).await? {
                return Ok(checked);
            }
        }
    }

    /// Handles the next frame. Returns the result of the check when the response is complete.
    async fn next(&mut self, response: &mut Response) -> Result<Option<Checked>, Outcome> {
        let failed = |reason| Err(Outcome::Failed(reason));
        let frame = match self.connection.next().await {
            Ok(frame) => frame,
            Err(FrameError::Stream(stream)) if stream != self.stream => return Ok(None),
            Err(FrameError::Stream(_) | FrameError::Connection) => return failed(Reason::GrpcError),
            Err(FrameError::Ended) => return failed(Reason::Closed),
        };
        match frame {
            Frame::Headers(headers) if headers.stream == self.stream => return response.on_headers(&headers),
            Frame::Data { stream, data, is_end } if stream == self.stream => {
                response.add(&data);
                // A response without trailers has no status.
                if is_end || response.length > MAX_RESPONSE_BYTES {
                    return failed(Reason::GrpcError);
                }
            }
            Frame::Reset { stream, code: code::REFUSED_STREAM } if stream == self.stream => {
                return Err(Outcome::Refused);
            }
            Frame::Reset { stream, .. } if stream == self.stream => return failed(Reason::GrpcError),
            Frame::GoAway { last_stream, .. } if last_stream < self.stream => {
                return Err(Outcome::Unprocessed);
            }
            Frame::Settings(settings) => self.apply(&settings),
            Frame::WindowUpdate { stream: 0, increment } => self.connection_window += i64::from(increment),
            Frame::WindowUpdate { stream, increment } if stream == self.stream => {
                self.stream_window += i64::from(increment);
            }
            _ => {}
        }
        Ok(None)
    }
}

/// Returns the header block of a call, and its size as HTTP/2 counts it.
fn block(call: Call<'_>) -> (Vec<u8>, usize) {
    let (mut block, mut size) = (Vec::with_capacity(256), 0);
    for (name, value) in [
        (":method", b"POST".as_slice()),
        (":scheme", call.scheme.as_bytes()),
        (":path", CHECK.as_bytes()),
        (":authority", call.authority.as_bytes()),
        ("content-type", b"application/grpc"),
        ("user-agent", call.user_agent),
        ("te", b"trailers"),
        ("grpc-timeout", call.timeout.as_bytes()),
    ] {
        hpack::encode(name.as_bytes(), value, &mut block);
        size += name.len() + value.len() + hpack::ENTRY_BYTES;
    }
    (block, size)
}

impl Response {
    fn add(&mut self, data: &[u8]) {
        self.length += data.len();
        let room = MAX_RESPONSE_BYTES - self.body.len();
        self.body.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// As `operateHeaders` of grpc-go: a first block without gRPC's content type is not gRPC, and a second
    /// one ends the response.
    fn on_headers(&mut self, headers: &Headers) -> Result<Option<Checked>, Outcome> {
        let failed = Err(Outcome::Failed(Reason::GrpcError));
        let is_first = self.content_type.is_none();
        if (!is_first && !headers.is_end) || headers.is_truncated {
            return failed;
        }
        let values = |wanted: &'static [u8]| {
            let fields = headers.fields.iter().filter(move |(name, _)| name == wanted);
            fields.map(|(_, value)| value.as_ref())
        };
        let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i32>().ok();
        if values(b"grpc-status").any(|status| number(status).is_none()) {
            return failed;
        }
        if is_first {
            let Some(content_type) = values(b"content-type").find(|value| is_grpc(value)) else {
                let http_status = values(b":status").find_map(number);
                let is_interim = http_status.is_some_and(|status| (100..200).contains(&status));
                return if is_interim && !headers.is_end { Ok(None) } else { failed };
            };
            self.content_type = Some(content_type.to_vec());
        }
        if headers.fields.iter().any(|(name, value)| name.ends_with(b"-bin") && !is_base64(value)) {
            return failed;
        }
        let grpc_status = values(b"grpc-status").next_back();
        if !headers.is_end {
            return Ok(None);
        }
        let response = GrpcResponse {
            content_type: self.content_type.as_deref(),
            grpc_status,
            body_length: self.length,
            body: &self.body,
        };
        Ok(Some(Checked { reason: response.reason(), status: grpc_status.and_then(number) }))
    }
}

/// True for a value that grpc-go accepts in a binary header: base64 with padding, or without.
fn is_base64(value: &[u8]) -> bool {
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    let (digits, _) = value.split_at(value.len() - padding);
    let has_valid_length = match value.len() % 4 {
        0 => padding <= 2,
        1 => false,
        _ => padding == 0,
    };
    has_valid_length && digits.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte))
}

#[cfg(test)]
mod tests;
