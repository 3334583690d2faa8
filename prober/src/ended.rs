//! How a probe ended.

use probe::Reason;

/// How a probe ended, as kubelet's prober tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The probe has a result. The status is the application's own, in 200 to 599, for
    /// [`Reason::Application`] and for a success, and that of the reason otherwise.
    Result { status: u16, reason: Reason },
    /// The body of a response with this status, in 200 to 599, broke off or did not end in time. kubelet's
    /// prober reports an error, tries again at once, at most three times in all, and then counts nothing.
    BrokenBody { status: u16, reason: Reason },
}

impl Ended {
    /// Returns the end of a probe for which the application's status does not count.
    pub fn by(reason: Reason) -> Self {
        Self::Result { status: reason.status(), reason }
    }

    /// Returns the end of a probe with the final response of the application. A redirect that is not
    /// followed is a success (`DoHTTPProbe` in `pkg/probe/http/http.go` of Kubernetes).
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Result { status, reason: Reason::Ok },
            300..=399 => Self::by(Reason::OkRedirect),
            400..=599 => Self::Result { status, reason: Reason::Application },
            _ => Self::by(Reason::Protocol),
        }
    }

    /// Returns the same end for a response whose body broke off.
    pub(crate) fn broken(self) -> Self {
        match self {
            Self::Result { status, reason } => Self::BrokenBody { status, reason },
            broken @ Self::BrokenBody { .. } => broken,
        }
    }
}
