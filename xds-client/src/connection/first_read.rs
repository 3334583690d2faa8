//! Reports when a server has accepted a TLS client. With TLS 1.3 the client's handshake ends before
//! the server has verified the client certificate, so a rejection arrives later, as an alert. The
//! first bytes of an HTTP/2 server, which always sends its settings first, prove that it accepted.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// A connection that passes on the result of the first read.
#[derive(Debug)]
pub(super) struct FirstRead<S> {
    stream: S,
    first: Option<oneshot::Sender<Result<(), String>>>,
}

impl<S> FirstRead<S> {
    /// Returns the connection, and the receiver of the result of the first read.
    pub(super) fn new(stream: S) -> (Self, oneshot::Receiver<Result<(), String>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { stream, first: Some(sender) }, receiver)
    }

    fn report(&mut self, result: Result<(), String>) {
        if let Some(first) = self.first.take() {
            // Sending fails only if the attempt has timed out.
            let _ = first.send(result);
        }
    }
}

impl<S: AsyncRead + Unpin> FirstRead<S> {
    /// Reports why the server has closed the connection, and returns the error of a write. A write
    /// fails without the reason, which is in the alert that was received before: it is read first.
    fn failed_write(&mut self, context: &mut Context<'_>, error: io::Error) -> Poll<io::Error> {
        if self.first.is_some() {
            let mut bytes = [0; 64];
            let read = Pin::new(&mut self.stream).poll_read(context, &mut ReadBuf::new(&mut bytes));
            let reason = match ready!(read) {
                Err(reason) => tls_error(&reason),
                Ok(()) => tls_error(&error),
            };
            self.report(Err(reason));
        }
        Poll::Ready(error)
    }
}

/// Returns the text of a failed handshake. If the server has rejected the client certificate, that
/// is not a fault of the connection, so the text names the flag.
pub(super) fn tls_error(error: &io::Error) -> String {
    let alert = match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(alert)) => *alert,
        _ => return error.to_string(),
    };
    match alert {
        AlertDescription::CertificateExpired => {
            "the server rejected the client certificate, because it has expired (--discovery-cert)".to_owned()
        }
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRequired => {
            format!("the server rejected the client certificate: {alert:?} (--discovery-cert)")
        }
        _ => error.to_string(),
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstRead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(result) = &result {
            let is_end = buffer.filled().len() == before;
            self.report(match result {
                Ok(()) if is_end => Err("the server closed the connection".to_owned()),
                Ok(()) => Ok(()),
                Err(error) => Err(tls_error(error)),
            });
        }
        result
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for FirstRead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(Pin::new(&mut self.stream).poll_write(context, bytes)) {
            Ok(written) => Poll::Ready(Ok(written)),
            Err(error) => self.failed_write(context, error).map(Err),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(Pin::new(&mut self.stream).poll_flush(context)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => self.failed_write(context, error).map(Err),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
