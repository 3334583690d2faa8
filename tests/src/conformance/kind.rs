//! The known kinds of differences from a direct probe. docs/notes-on-envoy-and-kubelet.md gives the
//! reason of each.

use serde::{Deserialize, Serialize};

/// A kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Envoy's codecs.
    D1,
    /// No second try within a probe.
    D2,
    /// Redirects.
    D3,
    /// Sizes.
    D4,
    /// Hooks.
    D5,
    /// Key usage.
    D6,
    /// `Connection` over TLS.
    D7,
}

impl Kind {
    /// What differs, and why, in a sentence or two.
    pub fn reason(self) -> &'static str {
        match self {
            Self::D1 => {
                "Envoy's HTTP codecs are not Go's. They refuse what smuggling is made of and what the RFCs forbid (two \
                 Content-Length, a blank before a colon, a body where none may be, forbidden or repeated headers and broken \
                 rules in HTTP/2, which gRPC's client bears), bear a few things that it does not, join lines of one name, \
                 and take a reset for the end of a body that ends with the connection"
            }
            Self::D2 => {
                "kubelet's gRPC and HTTP/2 clients try again within a probe when a connection or a stream is refused; \
                 we answer at once, and the next probe finds out"
            }
            Self::D3 => {
                "redirects are followed by callouts, whose answers Envoy keeps as a whole: a target over 1 MiB, endless \
                 or broken fails; the body of the redirect itself is not waited for, and must not break"
            }
            Self::D4 => {
                "limits on what an application may make the proxy keep: 1 MiB or 1000 lines of headers, 16 KiB of a health answer"
            }
            Self::D5 => "an https hook that speaks plaintext is not asked again in plaintext",
            Self::D6 => {
                "Envoy's TLS library refuses a certificate whose key usage lacks what its key is used for"
            }
            Self::D7 => {
                "over TLS no Connection: close is sent, since Envoy would write it into HTTP/2 too, where it is an error; \
                 for the same reason declared Connection, Keep-Alive, Upgrade and Proxy-Connection are left out there"
            }
        }
    }
}
