//! What a failed probe means: the status that kubelet gets, or the error that it reports.

use injector::STATUS_ANNOTATION;
use probe::reason::Reason;
use serde_json::Value;

use super::failures;
use super::table::{self, Entry};
use crate::advice;
use crate::container::Container;
use crate::destination::Destination;
use crate::event::Event;
use crate::situation::Situation;
use crate::wording::probe::ProbeError;
use injector::ProbeKind;

/// The annotation that Istio's injector writes.
const ISTIO_STATUS: &str = "sidecar.istio.io/status";

/// A probe, and where to look for what it answers.
#[derive(Clone, Copy)]
pub(crate) struct ProbeContext<'a> {
    pub(crate) situation: &'a Situation,
    pub(crate) pod: &'a Value,
    pub(crate) container: &'a Container<'a>,
    pub(crate) kind: ProbeKind,
    pub(crate) destination: Destination,
}

/// Where to look for the cause of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// In the application, which may need more time.
    Application,
    /// In what the probe declares, which no time corrects.
    Declaration,
    /// Between the node and the Pod.
    Network,
    /// The Pod lacks what the injection had added.
    Injection,
}

/// What a failure means.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    pub(crate) status: Option<u16>,
    /// The word of docs/answers.md.
    pub(crate) reason: Option<Reason>,
    /// The error that kubelet reports, if it got no status.
    pub(crate) error: Option<ProbeError>,
    pub(crate) fault: Fault,
    pub(crate) text: String,
    pub(crate) advice: String,
    /// False if something else may be meant.
    pub(crate) certain: bool,
}

impl ProbeContext<'_> {
    /// Returns what an event of kubelet means.
    pub(crate) fn of_event(&self, event: &Event) -> Meaning {
        let message = failures::message_of(event);
        if self.has_no_receiver() {
            return self.without_sidecar(message);
        }
        match self.error(message) {
            ProbeError::Status(status) => self.of_status(status, None),
            error => {
                let error = match error {
                    ProbeError::Other if self.destination == Destination::Command => {
                        Self::of_command(event, message)
                    }
                    error => error,
                };
                let (advice, certain) = advice::of_error(error, self.destination);
                Meaning {
                    status: None,
                    reason: None,
                    error: Some(error),
                    fault: self.fault(error),
                    text: message.to_owned(),
                    advice: advice.to_owned(),
                    certain,
                }
            }
        }
    }

    /// Tells the output of a command from what the runtime reports about it.
    fn of_command(event: &Event, message: &str) -> ProbeError {
        match () {
            () if failures::is_error(event) => ProbeError::Runtime,
            () if message.is_empty() => ProbeError::NoOutput,
            () => ProbeError::Other,
        }
    }

    fn fault(&self, error: ProbeError) -> Fault {
        match () {
            () if error.is_of_declaration() => Fault::Declaration,
            () if self.destination == Destination::OtherHost => Fault::Declaration,
            () if error.is_of_packets() => Fault::Network,
            () => Fault::Application,
        }
    }

    /// The output of a command may contain anything.
    fn error(&self, message: &str) -> ProbeError {
        let error = ProbeError::of(message);
        let is_of_command = matches!(
            error,
            ProbeError::CommandTimeout | ProbeError::NoCommand | ProbeError::Runtime | ProbeError::Other
        );
        if (self.destination == Destination::Command) == is_of_command { error } else { ProbeError::Other }
    }

    /// Returns what a status means; the body is known if the API server has sent the probe.
    pub(crate) fn of_status(&self, status: u16, body: Option<&str>) -> Meaning {
        let (reason, certain) = if self.destination == Destination::Sidecar {
            let own = body.map(|body| advice::reason_of_body(status, body).unwrap_or(Reason::Application));
            own.map_or_else(|| self.resolve(status), |reason| (reason, true))
        } else {
            (Reason::Application, true)
        };
        let mut meaning = Meaning {
            status: Some(status),
            reason: (self.destination == Destination::Sidecar).then_some(reason),
            error: None,
            fault: Fault::Application,
            text: format!("{status} {}: {}", reason.word(), reason.text()),
            advice: advice::sentence(reason).to_owned(),
            certain,
        };
        match reason {
            Reason::Application => self.describe_application(&mut meaning, status),
            Reason::UnknownProbe => {
                if let Some(sidecar) = self.lost() {
                    meaning.text = format!(
                        "{}: the prober table of the sidecar has no entry {}",
                        meaning.text,
                        self.path()
                    );
                    meaning.advice = format!(
                        "the table was lost or replaced after the injection, for example by a patch: compare ISTIO_KUBE_APP_PROBERS of the container {sidecar}, and inject the original manifest again"
                    );
                    meaning.certain = true;
                    meaning.fault = Fault::Injection;
                }
            }
            Reason::Closed if self.is_https() => {
                "the TLS handshake succeeded, and then the server closed the connection: it probably requires a client certificate, which neither kubelet nor the sidecar has. Let it accept this path without one, or probe another port".clone_into(&mut meaning.advice);
                meaning.certain = false;
            }
            Reason::Tls | Reason::GrpcUnimplemented | Reason::Redirect => {
                meaning.fault = Fault::Declaration;
            }
            _ => {}
        }
        meaning
    }

    fn describe_application(&self, meaning: &mut Meaning, status: u16) {
        meaning.text = format!("the application answers {status}");
        let (advice, certain) = advice::of_application(status, self.destination == Destination::Sidecar);
        advice.clone_into(&mut meaning.advice);
        meaning.certain &= certain;
        if matches!(status, 400 | 401 | 403 | 405) {
            meaning.fault = Fault::Declaration;
        }
        if self.destination == Destination::OtherHost {
            meaning.text = format!("the host of the probe answers {status}");
            "kubelet sends the probe to the host that it names, not to the Pod: look at that host, or remove host".clone_into(&mut meaning.advice);
            meaning.fault = Fault::Declaration;
        } else if self.is_answered_by_istio() && status == 500 {
            meaning.text = "Istio's sidecar answers 500".to_owned();
            "the sidecar answers 500 also if it does not reach the application: look at the log of istio-proxy, and at the application's log".clone_into(&mut meaning.advice);
            meaning.certain = false;
        }
    }

    /// Returns true if the sidecar is that of Istio, whose agent gives no reason beside the status.
    fn is_answered_by_istio(&self) -> bool {
        let annotations = &self.pod["metadata"]["annotations"];
        self.destination == Destination::Sidecar
            && annotations[ISTIO_STATUS].is_string()
            && !annotations[STATUS_ANNOTATION].is_string()
    }

    /// Returns true if the probe is rewritten, and no container answers it.
    pub(crate) fn has_no_receiver(&self) -> bool {
        self.destination == Destination::Sidecar && table::has_no_sidecar(self.pod)
    }

    pub(crate) fn without_sidecar(&self, message: &str) -> Meaning {
        Meaning {
            status: None,
            reason: None,
            error: None,
            fault: Fault::Injection,
            text: format!("{message}: the probe was rewritten for the sidecar, which the Pod does not have"),
            advice: "the sidecar was lost after the injection, for example by a patch that replaces the list of containers: inject the original manifest again".to_owned(),
            certain: true,
        }
    }

    /// Tells a status of the filter from one of the application, of which kubelet reports nothing
    /// but the number.
    fn resolve(&self, status: u16) -> (Reason, bool) {
        if self.is_answered_by_istio() {
            return (Reason::Application, true);
        }
        let logged = self.situation.sidecar_log.found();
        let logged = logged.and_then(|log| failures::last_word(log, self.container.name, self.kind.word()));
        match logged {
            Some(Reason::Application) => return (Reason::Application, true),
            Some(reason) if reason.status() == status => return (reason, true),
            _ => {}
        }
        match status {
            // The filter logs no word for a path that it does not know.
            404 if self.lost().is_some() => (Reason::UnknownProbe, true),
            // kubelet sends a GET without a body, and these two concern hooks and other requests.
            400 | 403 | 404 | 405 => (Reason::Application, status != 404 || self.entry() != Entry::Unknown),
            503 => (Reason::Application, false),
            520.. => (advice::reason_of_status(status), true),
            // A gateway or a limiter sends them too.
            status => {
                let reason = advice::reason_of_status(status);
                (reason, reason == Reason::Application)
            }
        }
    }

    fn path(&self) -> &str {
        self.container.value[self.kind.field()]["httpGet"]["path"].as_str().unwrap_or_default()
    }

    fn entry(&self) -> Entry {
        table::entry(self.pod, self.path())
    }

    /// Returns the name of the sidecar if its table lacks the path of this probe.
    fn lost(&self) -> Option<String> {
        match self.entry() {
            Entry::Missing(sidecar) => Some(sidecar),
            Entry::Declared(_) | Entry::Unknown => None,
        }
    }

    /// Returns true if the probe as it was written is sent over TLS.
    fn is_https(&self) -> bool {
        let sent = self.container.probe(self.kind);
        let declared = sent.and_then(|sent| super::declared::original(self.pod, self.container, sent));
        declared.is_some_and(|probe| probe["httpGet"]["scheme"] == "HTTPS")
    }
}
