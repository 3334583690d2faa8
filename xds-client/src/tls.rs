//! TLS towards a discovery server: a rustls client configuration made of PEM files.

mod resolver;
mod verifier;

use std::path::PathBuf;
use std::sync::Arc;

use resolver::FileResolver;
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{DnsName, ServerName};
use serving::tls::Pem;
pub use serving::tls::TlsError;
use verifier::UriVerifier;

/// The subject alternative name that the server's certificate must carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum San {
    /// A DNS name or an IP address.
    Name(ServerName<'static>),
    /// A URI, and the server name for SNI, which is not verified.
    Uri(String, ServerName<'static>),
}

impl San {
    /// Parses `spiffe://…`, a DNS name or an IP address. `host` is the server's host, used for SNI
    /// with a SPIFFE ID. Returns `None` if `text` is none of these.
    pub fn new(text: &str, host: &str) -> Option<Self> {
        let name = |text: &str| ServerName::try_from(text.to_owned()).ok();
        if text.starts_with("spiffe://") {
            let unnamed = || DnsName::try_from("discovery").ok().map(ServerName::DnsName);
            return Some(Self::Uri(text.to_owned(), name(host).or_else(unnamed)?));
        }
        name(text).map(Self::Name)
    }

    /// The server name for rustls, which is also sent as SNI.
    pub fn server_name(&self) -> ServerName<'static> {
        match self {
            Self::Name(name) | Self::Uri(_, name) => name.clone(),
        }
    }
}

/// Paths of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Names of the settings of all three files in error texts.
    pub names: [&'static str; 3],
    /// PEM file with the CA certificates that verify the server's certificate.
    pub ca: PathBuf,
    /// `None` if only a token authenticates the agent.
    pub client: Option<ClientFiles>,
}

/// Paths of the client certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// PEM file with the client certificate and its chain.
    pub cert: PathBuf,
    /// PEM file with the client certificate's private key.
    pub key: PathBuf,
    /// True if a token authenticates the agent as long as there is no valid certificate in these files, which are
    /// then read at each handshake.
    pub is_optional: bool,
}

/// CA, and the client certificate with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsContent {
    ca: Pem,
    client: Option<[Pem; 2]>,
    /// Files that are read at each handshake.
    optional: Option<ClientFiles>,
}

impl TlsFiles {
    /// The flags of the command `run`.
    pub const FLAGS: [&'static str; 3] = ["--discovery-ca", "--discovery-cert", "--discovery-key"];

    pub fn read(&self) -> Result<TlsContent, TlsError> {
        let [ca_name, cert_name, key_name] = self.names;
        let ca = Pem::read(ca_name, &self.ca)?;
        let client = |ClientFiles { cert, key, .. }: &ClientFiles| {
            Ok([Pem::read(cert_name, cert)?, Pem::read(key_name, key)?])
        };
        let (optional, required): (Option<_>, Option<_>) = match &self.client {
            Some(files) if files.is_optional => (Some(files.clone()), None),
            files => (None, files.as_ref()),
        };
        Ok(TlsContent { ca, client: required.map(client).transpose()?, optional })
    }
}

impl TlsContent {
    /// Checks that the certificate and the key belong together, and that there is a CA.
    pub fn check(&self) -> Result<(), TlsError> {
        let unused = ServerName::IpAddress(std::net::Ipv4Addr::LOCALHOST.into());
        self.client(&San::Name(unused)).map(drop)
    }

    /// Returns the PEM text of the CA.
    pub fn ca(&self) -> &[u8] {
        self.ca.as_bytes()
    }

    /// Returns the PEM texts of the client certificate and its key, if there is one.
    pub fn certificate_and_key(&self) -> Option<[&[u8]; 2]> {
        self.client.as_ref().map(|files| files.each_ref().map(Pem::as_bytes))
    }

    /// Builds a client configuration that accepts servers with the given name, over TLS 1.2 or 1.3
    /// and with HTTP/2 as the only ALPN protocol.
    pub fn client(&self, san: &San) -> Result<Arc<ClientConfig>, TlsError> {
        let Self { ca, client, optional } = self;
        let roots = ca.roots()?;
        let rejected = |error| TlsError::rejected(client.as_ref().map_or(ca, |[cert, _]| cert), error);
        let provider: Arc<CryptoProvider> = rustls::crypto::aws_lc_rs::default_provider().into();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(rejected)?;
        let builder = match san {
            San::Name(_) => builder.with_root_certificates(roots),
            San::Uri(uri, _) => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(UriVerifier::new(roots, uri.clone(), provider))),
        };
        let mut config = match (client, optional) {
            (Some([cert, key]), _) => {
                builder.with_client_auth_cert(cert.certificates()?, key.key()?).map_err(rejected)?
            }
            (None, Some(files)) => builder.with_client_cert_resolver(Arc::new(FileResolver(files.clone()))),
            (None, None) => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests;
