//! Bytes of hostile HTTP/2 clients.

/// The client connection preface.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
/// The error code CANCEL of RST_STREAM.
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A request: pseudo headers and headers, and a body.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    /// `None`: the request has no body.
    pub body: Option<&'a [u8]>,
}

impl Request<'_> {
    /// Encodes the head without compression.
    fn head(&self) -> Vec<u8> {
        let pseudo =
            [(":method", self.method), (":scheme", "http"), (":path", self.path), (":authority", "attack")];
        let mut block = Vec::new();
        for (name, value) in pseudo.iter().chain(self.headers) {
            block.push(0);
            for text in [name, value] {
                block.push(
                    u8::try_from(text.len()).ok().filter(|length| *length < 0x7f).expect("a short text"),
                );
                block.extend_from_slice(text.as_bytes());
            }
        }
        block
    }

    /// Returns the frames of the request on a stream.
    fn frames(&self, stream: u32) -> Vec<u8> {
        let ends = if self.body.is_none() { END_STREAM } else { 0 };
        let head = frame(HEADERS, END_HEADERS | ends, stream, &self.head());
        let body = self.body.map(|body| frame(DATA, 0, stream, body)).unwrap_or_default();
        [head, body].concat()
    }
}

/// Returns the beginning of a connection whose streams may receive nothing.
pub fn closed_window() -> Vec<u8> {
    let settings = [&INITIAL_WINDOW_SIZE[..], &0_u32.to_be_bytes()].concat();
    [PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat()
}

/// Returns this many requests on one connection whose responses have no window.
pub fn requests_without_window(request: Request<'_>, count: u32) -> Vec<u8> {
    let requests = (0..count).flat_map(|number| request.frames(number * 2 + 1));
    closed_window().into_iter().chain(requests).collect()
}

/// Returns this many requests on one connection, each of which is reset immediately.
pub fn resets(request: Request<'_>, count: u32) -> Vec<u8> {
    let requests = (0..count).flat_map(|number| {
        let stream = number * 2 + 1;
        [request.frames(stream), frame(RST_STREAM, 0, stream, &CANCEL)].concat()
    });
    closed_window().into_iter().chain(requests).collect()
}

/// Returns the beginning of a head, and a part that continues it without an end.
pub fn endless_head(request: Request<'_>) -> (Vec<u8>, Vec<u8>) {
    let begin = [closed_window(), frame(HEADERS, 0, 1, &request.head())].concat();
    let [without, with] =
        [&[][..], &[("x-header", "value")]].map(|headers| Request { headers, ..request }.head());
    let field = &with[without.len()..];
    (begin, frame(CONTINUATION, 0, 1, &field.repeat(64)))
}

/// Returns PING frames, each of which asks for a response, and settings that need an acknowledgement.
pub fn pings(count: usize) -> Vec<u8> {
    [frame(PING, 0, 0, &[0; 8]), frame(SETTINGS, 0, 0, &[])].concat().repeat(count)
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests;
