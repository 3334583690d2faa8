//! A GET request over HTTP/2 and its response, by the rules of the HTTP/2 client in Go's `net/http`.

use probe::{Reason, Request, UserAgent};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::Connection;
use super::frame::{Frame, FrameError, Headers, code, setting};
use super::hpack;
use crate::response::{BrokenBody, Response};

/// The only stream.
const STREAM: u32 = 1;
/// Error codes that only this client distinguishes from others.
const NO_ERROR: u32 = 0;
const PROTOCOL_ERROR: u32 = 1;
/// Settings that only this client uses.
const ENABLE_PUSH: u16 = 2;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// The window of a connection and of a stream before any settings, and the largest one.
const INITIAL_WINDOW: i64 = 65_535;
const MAX_WINDOW: i64 = 0x7fff_ffff;
/// Settings and windows of Go's client.
const SETTINGS: [(u16, u32); 3] =
    [(ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, 4 << 20), (setting::MAX_HEADER_LIST_SIZE, 10 << 20)];
const WINDOW: u32 = 1 << 30;
const MAX_FRAME_BYTES: usize = 16 << 10;
/// Headers that belong to a connection of HTTP/1.1.
const CONNECTION_HEADERS: [&str; 4] = ["connection", "proxy-connection", "upgrade", "keep-alive"];

/// A request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The application did not process it, and Go's client sends it again on another connection.
    Unprocessed,
    Failed(Reason),
}

/// A body that has not been read, and its connection.
#[derive(Debug)]
pub(crate) struct Body<S> {
    exchange: Exchange<S>,
    /// The declared length that is not read yet.
    left: Option<u64>,
    /// Bytes that have arrived.
    arrived: u64,
}

/// Sends a request on a new connection, and reads the head of the final response.
pub(crate) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: &Request,
    user_agent: &[u8],
) -> Result<Response<Body<S>>, Unanswered> {
    if !may_be_sent(request) {
        return Err(Unanswered::Failed(Reason::Protocol));
    }
    let mut connection = Connection::new(stream, &SETTINGS, WINDOW, MAX_FRAME_BYTES);
    connection.write_headers(STREAM, true, &block(request, user_agent));
    let mut exchange = Exchange {
        connection,
        has_settings: false,
        awaits_ack: true,
        initial_window: INITIAL_WINDOW,
        windows: [INITIAL_WINDOW; 2],
        state: State::Head,
    };
    loop {
        match exchange.next().await {
            Event::Head(headers) => return response(exchange, &headers),
            Event::Data(_) => {}
            Event::End => return Err(Unanswered::Failed(Reason::Closed)),
            Event::Broken(unanswered) => return Err(unanswered),
        }
    }
}

fn response<S>(exchange: Exchange<S>, headers: &Headers) -> Result<Response<Body<S>>, Unanswered> {
    let values = |wanted: &[u8]| {
        let fields = headers.fields.iter().filter(move |(name, _)| name == wanted);
        fields.map(|(_, value)| value.as_ref()).collect::<Vec<_>>()
    };
    let status = status(headers).ok_or(Unanswered::Failed(Reason::Protocol))?;
    // Go ignores a length that it cannot parse, and several of them.
    let length = match values(b"content-length").as_slice() {
        [length] if length.iter().all(u8::is_ascii_digit) => {
            std::str::from_utf8(length).ok().and_then(|length| length.parse::<i64>().ok())
        }
        _ => None,
    };
    let left = length.map(i64::unsigned_abs);
    let location = values(b"location").first().map(|location| location.to_vec());
    Ok(Response { status, location, body: Body { exchange, left, arrived: 0 } })
}

/// Returns the `:status`; 1 to 3 digits, as Go's `Atoi` accepts them.
fn status(headers: &Headers) -> Option<u16> {
    let (_, value) = headers.fields.iter().find(|(name, _)| name.as_ref() == b":status")?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// False for headers about the connection that Go's client refuses to leave out (`checkConnHeaders`).
fn may_be_sent(request: &Request) -> bool {
    let values = |wanted: &'static str| {
        let headers = request.headers.iter().chain(&request.ignored).filter(move |(name, _)| name == wanted);
        headers.map(|(_, value)| value.as_slice()).collect::<Vec<_>>()
    };
    let is_harmless = |value: &[u8]| {
        [b"".as_slice(), b"close", b"keep-alive"].iter().any(|word| word.eq_ignore_ascii_case(value))
    };
    let upgrade = values("upgrade").first().copied().unwrap_or_default();
    (upgrade.is_empty() || upgrade == b"chunked")
        && match values("connection").as_slice() {
            [] => true,
            [value] => is_harmless(value),
            _ => false,
        }
        && matches!(values("transfer-encoding").as_slice(), [] | [b"" | b"chunked"])
}

/// Returns the header block of a request.
fn block(request: &Request, user_agent: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(512);
    let mut add = |name: &[u8], value: &[u8]| hpack::encode(name, value, &mut block);
    add(b":authority", request.authority());
    add(b":method", b"GET");
    add(b":path", &request.url.request_target());
    add(b":scheme", &request.url.scheme);
    if request.user_agent == UserAgent::Kubelet {
        add(b"user-agent", user_agent);
    }
    let mut has_user_agent = false;
    for (name, value) in &request.headers {
        match name.as_str() {
            name if CONNECTION_HEADERS.contains(&name) => {}
            "user-agent" if has_user_agent => {}
            "cookie" => {
                let crumbs = value.split(|byte| *byte == b';').map(<[u8]>::trim_ascii_start);
                crumbs.filter(|crumb| !crumb.is_empty()).for_each(|crumb| add(b"cookie", crumb));
            }
            name => {
                has_user_agent |= name == "user-agent";
                add(name.as_bytes(), value);
            }
        }
    }
    let trailers = request.ignored.iter().filter(|(name, _)| name == "trailer");
    trailers.for_each(|(name, value)| add(name.as_bytes(), value));
    if let Some(referer) = &request.referer {
        add(b"referer", referer);
    }
    if let Some(authorization) = &request.authorization {
        add(b"authorization", authorization);
    }
    block
}

/// A request that was sent, and the state of its stream.
#[derive(Debug)]
struct Exchange<S> {
    connection: Connection<S>,
    has_settings: bool,
    awaits_ack: bool,
    /// The window of a new stream.
    initial_window: i64,
    /// The windows of connection and stream, of which only the limit matters: a GET has no body.
    windows: [i64; 2],
    state: State,
}

/// What the stream awaits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body,
    /// The application has ended the stream.
    Ended,
}

/// What happened on the stream.
#[derive(Debug)]
enum Event {
    /// The head of the final response.
    Head(Headers),
    Data(usize),
    End,
    Broken(Unanswered),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Exchange<S> {
    /// Returns the next event; [`Event::End`] again after the end.
    async fn next(&mut self) -> Event {
        let failed = |reason| Event::Broken(Unanswered::Failed(reason));
        while self.state != State::Ended {
            let frame = match self.connection.next().await {
                Ok(frame) => frame,
                Err(FrameError::Stream(STREAM)) => return failed(Reason::Protocol),
                Err(FrameError::Stream(_)) => continue,
                Err(FrameError::Connection) => return failed(Reason::Protocol),
                Err(FrameError::Ended) => return failed(Reason::Closed),
            };
            if !self.has_settings && !matches!(frame, Frame::Settings(_) | Frame::SettingsAck) {
                return failed(Reason::Protocol);
            }
            match frame {
                Frame::Headers(headers) if headers.stream == STREAM => match self.on_headers(headers) {
                    Ok(Some(event)) => return event,
                    Ok(None) => {}
                    Err(reason) => return failed(reason),
                },
                Frame::Data { stream: STREAM, .. } if self.state == State::Head => {
                    return failed(Reason::Protocol);
                }
                Frame::Data { stream: STREAM, data, is_end } => {
                    if is_end {
                        self.state = State::Ended;
                    }
                    return Event::Data(data.len());
                }
                // Data of a stream that was never opened.
                Frame::Data { .. } | Frame::PushPromise => return failed(Reason::Protocol),
                Frame::Reset { stream: STREAM, code } => return Event::Broken(on_reset(code)),
                Frame::Settings(settings) => {
                    self.has_settings = true;
                    if !self.apply(&settings) {
                        return failed(Reason::Protocol);
                    }
                }
                Frame::WindowUpdate { stream, increment } if stream <= STREAM => {
                    let window = &mut self.windows[stream as usize];
                    *window += i64::from(increment);
                    if *window > MAX_WINDOW {
                        return failed(Reason::Protocol);
                    }
                }
                Frame::SettingsAck if self.awaits_ack => {
                    self.has_settings = true;
                    self.awaits_ack = false;
                }
                Frame::SettingsAck => return failed(Reason::Protocol),
                Frame::GoAway { last_stream, code } if last_stream < STREAM => {
                    return Event::Broken(match code {
                        NO_ERROR => Unanswered::Unprocessed,
                        _ => Unanswered::Failed(Reason::Closed),
                    });
                }
                Frame::Headers(_)
                | Frame::Reset { .. }
                | Frame::GoAway { .. }
                | Frame::Ping(_)
                | Frame::WindowUpdate { .. }
                | Frame::Other => {}
            }
        }
        Event::End
    }

    /// Returns false for settings that Go's client rejects.
    fn apply(&mut self, settings: &[(u16, u32)]) -> bool {
        for (id, value) in settings {
            match *id {
                ENABLE_CONNECT_PROTOCOL if *value > 1 => return false,
                setting::INITIAL_WINDOW_SIZE => {
                    let window = i64::from(*value);
                    self.windows[STREAM as usize] += window - self.initial_window;
                    self.initial_window = window;
                }
                _ => {}
            }
        }
        true
    }

    fn on_headers(&mut self, headers: Headers) -> Result<Option<Event>, Reason> {
        if self.state == State::Body {
            // Trailers
            let is_valid = headers.is_end && !headers.fields.iter().any(|(name, _)| name.starts_with(b":"));
            self.state = State::Ended;
            return if is_valid { Ok(Some(Event::End)) } else { Err(Reason::Protocol) };
        }
        let status = status(&headers).filter(|_| !headers.is_truncated).ok_or(Reason::Protocol)?;
        if (100..200).contains(&status) {
            return if headers.is_end { Err(Reason::Protocol) } else { Ok(None) };
        }
        self.state = if headers.is_end { State::Ended } else { State::Body };
        Ok(Some(Event::Head(headers)))
    }
}

/// Go's client sends a request again after these two.
fn on_reset(code: u32) -> Unanswered {
    match code {
        code::REFUSED_STREAM | PROTOCOL_ERROR => Unanswered::Unprocessed,
        _ => Unanswered::Failed(Reason::Closed),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Body<S> {
    /// False if the head says that the body has more bytes.
    pub(crate) fn may_be_short(&self, bytes: usize) -> bool {
        self.left.is_none_or(|left| left <= bytes as u64)
    }

    /// Reads to the end, but at most this many bytes.
    pub(crate) async fn read_at_most(&mut self, most: usize) -> Result<(), BrokenBody> {
        let most = most as u64;
        loop {
            let read = self.arrived.min(most);
            if self.left.is_some_and(|left| read > left) {
                return Err(BrokenBody);
            }
            if self.arrived >= most {
                return Ok(());
            }
            match self.exchange.next().await {
                Event::Data(bytes) => self.arrived += bytes as u64,
                Event::End if self.left.is_some_and(|left| self.arrived < left) => return Err(BrokenBody),
                Event::End => return Ok(()),
                Event::Head(_) | Event::Broken(_) => return Err(BrokenBody),
            }
        }
    }
}

#[cfg(test)]
mod tests;
