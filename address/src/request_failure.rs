//! How a request over HTTP fails.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFailure {
    Refused,
    Timeout,
    TooLarge,
    BadStatus,
    /// A redirect that is not followed.
    BadRedirect,
    /// The response is incomplete or malformed.
    BadBody,
}

impl RequestFailure {
    /// Returns true if the peer responded, although not as expected.
    pub fn is_response(self) -> bool {
        matches!(self, Self::BadStatus | Self::BadRedirect | Self::TooLarge)
    }

    /// Returns the outcome of a request as a metric label.
    pub fn outcome(result: Result<(), Self>) -> &'static str {
        match result {
            Ok(()) => "ok",
            Err(Self::Refused) => "refused",
            Err(Self::Timeout) => "timeout",
            Err(Self::TooLarge) => "too_large",
            Err(Self::BadStatus) => "bad_status",
            Err(Self::BadRedirect) => "bad_redirect",
            Err(Self::BadBody) => "bad_body",
        }
    }
}
