//! Checks whether the bytes of an HTTP/1 response conform to RFC 9110 and RFC 9112. Envoy and Go
//! agree on every conforming response; for others they may differ.

/// Classification of the bytes that an application writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Complete,
    /// A response whose body ends with the connection.
    UntilClose,
    /// The beginning of a response.
    Incomplete,
    /// Not a valid response; the text says why.
    Invalid(&'static str),
}

/// The body framing that the status line and the headers declare.
#[derive(Clone, Copy)]
enum Framing {
    Length(usize),
    Chunked,
    Nothing,
    UntilClose,
}

/// Classifies all bytes that an application writes on one connection.
pub fn judge(mut bytes: &[u8]) -> Answer {
    loop {
        let Some(end) = find(bytes, b"\r\n\r\n") else {
            return match lines(bytes).map(|lines| partial(&lines)) {
                Some(Ok(())) | None => Answer::Incomplete,
                Some(Err(reason)) => Answer::Invalid(reason),
            };
        };
        let (head, rest) = (&bytes[..end], &bytes[end + 4..]);
        match framing(head) {
            Err(reason) => return Answer::Invalid(reason),
            Ok((status, _)) if (100..200).contains(&status) && status != 101 => bytes = rest,
            Ok((_, Framing::Nothing)) => return Answer::Complete,
            Ok((_, Framing::UntilClose)) => return Answer::UntilClose,
            Ok((_, Framing::Length(length))) if rest.len() >= length => return Answer::Complete,
            Ok((_, Framing::Length(_))) => return Answer::Incomplete,
            Ok((_, Framing::Chunked)) => return chunks(rest),
        }
    }
}

/// Returns the status and the framing of a head without its last empty line.
fn framing(head: &[u8]) -> Result<(u16, Framing), &'static str> {
    let mut lines = split(head);
    let (status, old) = status_line(lines.next().unwrap_or_default())?;
    let (mut lengths, mut codings, mut locations) = (Vec::new(), Vec::new(), 0);
    for line in lines {
        let (name, value) = field(line)?;
        match name.as_str() {
            "content-length" => lengths.push(value),
            "transfer-encoding" => codings.push(value),
            "location" => {
                locations += 1;
                if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err("a Location that is not a URI");
                }
            }
            // Clients differ on a server that sends one of these headers without switching
            // protocols, or repeats one.
            "upgrade" | "trailer" => return Err("a header that changes the protocol"),
            _ => {}
        }
    }
    if locations > 1 {
        return Err("two Location lines");
    }
    let bodiless = (100..200).contains(&status) || status == 204;
    let framing = match (lengths.as_slice(), codings.as_slice()) {
        ([], []) if bodiless || status == 304 => Framing::Nothing,
        _ if bodiless => return Err("a body where none is allowed"),
        ([], []) => Framing::UntilClose,
        ([length], [])
            if length.len() < 10
                && !length.is_empty()
                && length.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            if status == 304 {
                Framing::Nothing
            } else {
                Framing::Length(length.parse().unwrap_or(usize::MAX))
            }
        }
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") && !old => {
            if status == 304 {
                Framing::Nothing
            } else {
                Framing::Chunked
            }
        }
        _ => return Err("conflicting or invalid lengths"),
    };
    Ok((status, framing))
}

/// Returns the status, and whether the version is HTTP/1.0.
fn status_line(line: &[u8]) -> Result<(u16, bool), &'static str> {
    let old = line.starts_with(b"HTTP/1.0 ");
    let digits = match line.strip_prefix(b"HTTP/1.1 ").or_else(|| line.strip_prefix(b"HTTP/1.0 ")) {
        Some([a, b, c, b' ', reason @ ..]) if reason.iter().all(|byte| is_text(*byte)) => [*a, *b, *c],
        _ => return Err("an invalid status line"),
    };
    let status =
        std::str::from_utf8(&digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let status = status.and_then(|text| text.parse().ok()).filter(|status| (100..600).contains(status));
    Ok((status.ok_or("an invalid status")?, old))
}

/// Returns the name in lower case and the value of a header line.
fn field(line: &[u8]) -> Result<(String, String), &'static str> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or("a header without a colon")?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(token) {
        return Err("an invalid header name");
    }
    if !value.iter().all(|byte| is_text(*byte)) {
        return Err("a control character");
    }
    let value: String = value.trim_ascii().iter().copied().map(char::from).collect();
    Ok((String::from_utf8_lossy(name).to_ascii_lowercase(), value))
}

/// Returns whether a byte is printable, a space, a tab, or beyond ASCII.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Returns the complete lines of a head that has not ended; `None` if there is none yet.
fn lines(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let end = bytes.windows(2).rposition(|pair| pair == b"\r\n")?;
    Some(split(&bytes[..end]).collect())
}

fn partial(lines: &[&[u8]]) -> Result<(), &'static str> {
    let (first, rest) = lines.split_first().ok_or("nothing")?;
    status_line(first)?;
    rest.iter().try_for_each(|line| field(line).map(drop))
}

/// Checks the body of a chunked response.
fn chunks(mut bytes: &[u8]) -> Answer {
    loop {
        let Some(end) = find(bytes, b"\r\n") else {
            let size = |byte: &u8| byte.is_ascii_hexdigit();
            let started = bytes.iter().all(size) && bytes.len() < 8;
            return if started { Answer::Incomplete } else { Answer::Invalid("an invalid chunk size") };
        };
        let line = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
        let (line, extension) = line.split_once(';').unwrap_or((line, "x"));
        if extension.is_empty() || !extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'=')
        {
            return Answer::Invalid("an invalid chunk extension");
        }
        let digits = !line.is_empty() && line.len() < 8 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(size) = usize::from_str_radix(line, 16).ok().filter(|_| digits) else {
            return Answer::Invalid("an invalid chunk size");
        };
        bytes = &bytes[end + 2..];
        if size == 0 {
            return trailers(bytes);
        }
        match bytes.get(size..size + 2) {
            Some(b"\r\n") => bytes = &bytes[size + 2..],
            Some(_) => return Answer::Invalid("a chunk without CRLF at its end"),
            None if bytes.get(size).is_some_and(|byte| *byte != b'\r') => {
                return Answer::Invalid("a chunk without CRLF at its end");
            }
            None => return Answer::Incomplete,
        }
    }
}

/// Checks the trailers after the last chunk.
fn trailers(bytes: &[u8]) -> Answer {
    if bytes.starts_with(b"\r\n") {
        return Answer::Complete;
    }
    let Some(end) = find(bytes, b"\r\n\r\n") else { return Answer::Incomplete };
    if split(&bytes[..end]).all(|line| field(line).is_ok()) {
        Answer::Complete
    } else {
        Answer::Invalid("an invalid trailer")
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Splits bytes at CRLF.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let Some(end) = find(bytes, b"\r\n") else {
            done = true;
            return Some(bytes);
        };
        let line = &bytes[..end];
        bytes = &bytes[end + 2..];
        Some(line)
    })
}

#[cfg(test)]
mod tests;
