use super::{Answer, judge};

#[test]
fn answers() {
    for (bytes, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", Answer::Complete),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", Answer::Complete),
        ("HTTP/1.1 100 \r\n\r\nHTTP/1.1 204 \r\n\r\n", Answer::Complete),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", Answer::Complete),
        ("HTTP/1.0 200 OK\r\n\r\nok", Answer::UntilClose),
        ("", Answer::Incomplete),
        ("HTTP/1.1 200 OK\r\nContent-", Answer::Incomplete),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", Answer::Incomplete),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", Answer::Incomplete),
    ] {
        assert_eq!(judge(bytes.as_bytes()), expected, "{bytes:?}");
    }
}

#[test]
fn invalid_response_lines() {
    for bytes in [
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nX: a\x01\r\nContent-",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokx\r\n",
        "hello\r\n",
    ] {
        assert!(matches!(judge(bytes.as_bytes()), Answer::Invalid(_)), "{bytes:?}");
    }
}
