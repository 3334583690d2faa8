//! The names by which Envoy asks for secrets, in a mesh of Istio.

/// A secret that an agent can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretName {
    /// `default`: the certificate of the workload and its key.
    Workload,
    /// `ROOTCA`: the CA certificates of the mesh.
    MeshRoots,
    /// `file-root:system`: the CA certificates of the operating system.
    SystemRoots,
    /// `file-root:PATH`: the CA certificates in a file.
    FileRoots(String),
    /// `file-cert:PATH~PATH`: a certificate and its key in files.
    FileCertificate { certificate: String, key: String },
}

impl SecretName {
    /// Returns `None` for a name that only a control plane can know.
    pub fn parse(name: &str) -> Option<Self> {
        const SEPARATOR: char = '~';
        match name {
            "default" => return Some(Self::Workload),
            "ROOTCA" => return Some(Self::MeshRoots),
            "file-root:system" => return Some(Self::SystemRoots),
            _ => {}
        }
        if let Some(file) = name.strip_prefix("file-root:") {
            let is_one = !file.is_empty() && !file.contains(SEPARATOR);
            return is_one.then(|| Self::FileRoots(file.to_owned()));
        }
        let (certificate, key) = name.strip_prefix("file-cert:")?.split_once(SEPARATOR)?;
        let is_pair = !certificate.is_empty() && !key.is_empty() && !key.contains(SEPARATOR);
        is_pair.then(|| Self::FileCertificate { certificate: certificate.to_owned(), key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests;
