//! Why an image cannot be pulled: the messages of containerd, CRI-O and Docker, which pass on those of
//! registries.

use super::{Wording, wording};

const NO_REPOSITORY: &str = "check the name of the image; if its repository is private, imagePullSecrets of the Pod or of its service account";
const DENIED: &str = "check imagePullSecrets of the Pod or of its service account";
const OPENSHIFT: &str = "let the service account pull from the project of the image: oc policy add-role-to-user system:image-puller -z NAME -n PROJECT";
const NO_TAG: &str = "check the name and the tag of the image";
const LIMIT: &str = "the registry limits anonymous pulls: add imagePullSecrets, or use a mirror";
const CERTIFICATE: &str =
    "the node does not trust the certificate of the registry: add its CA to the container runtime";
const PLATFORM: &str = "the image does not exist for the operating system and the CPU architecture of the node: build it for them, or use a nodeSelector";
const NETWORK: &str =
    "the node cannot reach the registry: check its name, and the network and the proxy settings of the node";
const DISK: &str = "the disk of the node is full: free space, or use a larger one";
const REGISTRY: &str = "the registry itself fails: try again later, or ask its operator";
const PLAIN: &str = "the registry has no TLS: add it as an insecure registry to the container runtime, or give it a certificate";

/// What to do if another name or another secret helps.
pub(crate) const OF_NAME: [&str; 3] = [NO_REPOSITORY, DENIED, NO_TAG];

const CONTAINERD: &str = "containerd, core/remotes/docker";
const CRIO: &str = "CRI-O, containers/image/docker";
const DOCKER: &str = "Docker, distribution";
const DISTRIBUTION: &str = "distribution, errors of the registry API";
const GO: &str = "Go, net and crypto/x509";

/// Patterns of the whole message; the beginning names the image and the request.
pub(crate) const TABLE: &[Wording] = &[
    wording("*toomanyrequests: *", DISTRIBUTION, LIMIT),
    wording("*: 429 Too Many Requests*", CONTAINERD, LIMIT),
    wording("*: Too Many Requests*", CRIO, LIMIT),
    wording(
        "*: content digest sha256:*: not found*",
        "containerd, content store",
        "the image store of the node lacks a part of the image: remove the image there (crictl rmi), so that it is pulled again",
    ),
    wording(
        "short-name * did not resolve to an alias and no unqualified-search registries are defined *",
        "CRI-O, containers/image/pkg/shortnames",
        "write the full name of the image, with its registry",
    ),
    wording("*: no basic auth credentials*", DOCKER, DENIED),
    wording("*image-registry.openshift-image-registry.svc*: authentication required*", CRIO, OPENSHIFT),
    wording("*: authentication required*", CRIO, DENIED),
    wording(
        "*pull QPS exceeded",
        "pkg/kubelet/images/helpers.go",
        "kubelet pulls no more images at once (registryPullQPS, registryBurst), and tries again on its own",
    ),
    wording(
        "*: media type \"*\" is no longer supported since containerd *",
        CONTAINERD,
        "the image has an old format: build it with a current tool, and push it again",
    ),
    wording(
        "* failed size validation: *: failed precondition*",
        CONTAINERD,
        "the registry, or a proxy before it, delivered only a part of the image: if it stays so, clear its cache, or push the image again",
    ),
    wording("*: no match for platform in manifest*", CONTAINERD, PLATFORM),
    wording("*no matching manifest for * in the manifest list entries*", DOCKER, PLATFORM),
    wording("*: no image found in * for architecture *", CRIO, PLATFORM),
    wording(
        "*: x509: certificate has expired or is not yet valid*",
        GO,
        "the certificate of the registry has expired, or the clock of the node is wrong: renew the certificate, or correct the clock",
    ),
    wording(
        "*: x509: certificate is valid for *, not *",
        GO,
        "the certificate of the registry is that of another name: use the name that it has, or renew it",
    ),
    wording("*: x509: certificate signed by unknown authority*", GO, CERTIFICATE),
    wording("*: tls: failed to verify certificate: *", GO, CERTIFICATE),
    wording("*: http: server gave HTTP response to HTTPS client*", "Go, net/http", PLAIN),
    wording("*: no space left on device*", "Linux, ENOSPC", DISK),
    // A registry does not say whether a private repository exists.
    wording(
        "*: pull access denied, repository does not exist or may require authorization*",
        CONTAINERD,
        NO_REPOSITORY,
    ),
    wording(
        "*pull access denied for *, repository does not exist or may require 'docker login'*",
        DOCKER,
        NO_REPOSITORY,
    ),
    wording("*: requested access to the resource is denied*", DISTRIBUTION, NO_REPOSITORY),
    wording("*: insufficient_scope: *", DISTRIBUTION, NO_REPOSITORY),
    wording("*: name unknown: *", DISTRIBUTION, NO_REPOSITORY),
    wording("*: unauthorized: *", DISTRIBUTION, DENIED),
    wording("*: unauthorized", DISTRIBUTION, DENIED),
    wording("*: denied: *", DISTRIBUTION, DENIED),
    wording("*: 401 Unauthorized*", CONTAINERD, DENIED),
    wording("*: 403 Forbidden*", CONTAINERD, DENIED),
    wording("*unable to retrieve auth token: invalid username/password*", CRIO, DENIED),
    wording("*: manifest unknown*", DISTRIBUTION, NO_TAG),
    wording("*failed to resolve reference \"*\": *: not found*", CONTAINERD, NO_TAG),
    wording("*failed to resolve image: *: not found*", CONTAINERD, NO_TAG),
    wording("*failed to pull and unpack image \"*\": not found", CONTAINERD, NO_TAG),
    wording("*: 404 Not Found*", CONTAINERD, NO_TAG),
    wording(
        "*dial tcp: lookup *: no such host*",
        GO,
        "the node cannot resolve the name of the registry: check the name of the image, and the DNS of the node",
    ),
    wording(
        "*dial tcp: lookup *: *",
        GO,
        "the node cannot resolve the name of the registry: check the DNS of the node",
    ),
    wording("*dial tcp *: connect: connection refused*", GO, NETWORK),
    wording("*dial tcp *: connect: no route to host*", GO, NETWORK),
    wording("*dial tcp *: connect: network is unreachable*", GO, NETWORK),
    wording("*dial tcp *: i/o timeout*", GO, NETWORK),
    wording("*: net/http: TLS handshake timeout*", GO, NETWORK),
    wording("*: failed to do request: *: EOF*", CONTAINERD, NETWORK),
    wording("*read tcp *: read: connection reset by peer*", GO, NETWORK),
    wording("*: context deadline exceeded*", GO, NETWORK),
    wording("*: 500 Internal Server Error*", CONTAINERD, REGISTRY),
    wording("*: 502 Bad Gateway*", CONTAINERD, REGISTRY),
    wording("*: 503 Service Unavailable*", CONTAINERD, REGISTRY),
    wording(
        "*couldn't parse image name *",
        "pkg/util/parsers/parsers.go",
        "correct the image of the container: it must have the form of an image reference, in lower case and without https://",
    ),
];
