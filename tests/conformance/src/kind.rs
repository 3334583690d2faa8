//! The known kinds of differences from a direct probe. docs/notes-on-envoy-and-kubelet.md
//! justifies each of them.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Envoy's HTTP codecs differ from Go's.
    D1,
    /// No retry within a probe.
    D2,
    /// Redirects are followed by callouts.
    D3,
    /// Size limits apply to responses.
    D4,
    /// Lifecycle hooks are not retried in plaintext.
    D5,
    /// Envoy verifies the key usage of certificates.
    D6,
    /// The header `Connection` is omitted over TLS.
    D7,
    /// The agent repeats a refused request a limited number of times.
    A1,
    /// The agent sends no whitespace around a value over HTTP/2.
    A2,
}

impl Kind {
    /// Returns what differs and why, in a sentence or two.
    pub fn reason(self) -> &'static str {
        match self {
            Self::D1 => {
                "Envoy's HTTP codecs differ from Go's. They reject what request smuggling uses and what the RFCs forbid (two \
                 Content-Length, a space before a colon, a body where none is allowed, forbidden or repeated headers and \
                 violations of HTTP/2, which gRPC's client tolerates), accept a few things that Go rejects, join header lines \
                 of one name, and treat a reset as the end of a body that ends with the connection"
            }
            Self::D2 => {
                "kubelet's gRPC and HTTP/2 clients retry within a probe when a connection or a stream is refused; \
                 the filter fails the probe at once and leaves the retry to the next probe"
            }
            Self::D3 => {
                "redirects are followed by callouts, whose responses Envoy buffers completely: a target with a body over 1 MiB, \
                 an endless body or an incomplete one fails; the filter does not wait for the body of the redirect itself, which \
                 must not break off"
            }
            Self::D4 => {
                "limits on what an application can make the proxy buffer: 1 MiB or 1000 lines of headers, 16 KiB of a gRPC health response"
            }
            Self::D5 => "an https hook whose server speaks plaintext is not retried in plaintext",
            Self::D6 => {
                "Envoy's TLS library rejects a certificate whose key usage does not include the use of its key"
            }
            Self::D7 => {
                "over TLS no Connection: close is sent, because Envoy would also write it into HTTP/2, where it is an error; \
                 for the same reason declared Connection, Keep-Alive, Upgrade and Proxy-Connection headers are omitted there"
            }
            Self::A1 => {
                "an application that refuses every HTTP/2 stream is asked at most 50 times in a probe by the agent, and by kubelet \
                 as often as the timeout permits; the probe fails in both cases"
            }
            Self::A2 => {
                "over HTTP/2, the agent sends declared values without the whitespace around them, which RFC 9113 forbids"
            }
        }
    }
}
