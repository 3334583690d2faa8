//! The last line of a container that has exited. The application may write anything, so its words
//! are a hint only, and only in the form in which an operating system, a language or a library
//! reports an error.

use super::container::EXEC_FORMAT;
use super::{Wording, wording};

const READ_ONLY: &str = "readOnlyRootFilesystem is set, or the volume is mounted read-only: mount an emptyDir where the application writes";
const PORT: &str =
    "another process of the Pod listens on the same port: all containers of a Pod share the ports";
const DISK: &str = "a volume, or the disk of the node, is full";
const PERMISSION: &str =
    "compare runAsUser, fsGroup and capabilities with the files and ports that the application uses";
const CAPABILITY: &str =
    "does the application need a capability, or another user? Compare its security context";
const FILE: &str = "compare command, volumeMounts and the image: the file does not exist";
const DNS: &str = "the application cannot resolve a name: correct the name, or look at the cluster's DNS";
const OTHER_SERVER: &str = "the application cannot connect to another server: does that run, and does a NetworkPolicy or the proxy allow the connection?";
const TRUST: &str =
    "the application does not trust the certificate of another server: give it the CA of that server";

const REFUSED_CALL: &str =
    "another server refuses the call: look at the credentials and the rights of the application there";

const INTERPRETER: &str = "the interpreter of the script, or the library loader of the program, is not in the image: compare the #! line, its line ends, and the C library";
const LIBRARY: &str = "the program needs another C library, or a library that is not in the image: build it for the base image in which it runs";
const ERRNO: &str = "strerror of glibc and musl, and the languages that use it";

/// Patterns of the line in lower case.
pub(crate) const TABLE: &[Wording] = &[
    wording("*rpc error: code = permissiondenied desc = *", "gRPC, status", REFUSED_CALL),
    wording("*rpc error: code = unauthenticated desc = *", "gRPC, status", REFUSED_CALL),
    wording("*connection to server on socket * failed: *", "libpq", OTHER_SERVER),
    wording("*exec format error", ERRNO, EXEC_FORMAT),
    wording("*read-only file system", ERRNO, READ_ONLY),
    wording("*read-only file system: '*", "Python", READ_ONLY),
    wording("*erofs: read-only file system, *", "Node.js, libuv", READ_ONLY),
    wording("*read-only file system (os error 30)*", "Rust, std::io", READ_ONLY),
    wording("*(read-only file system)", "Java", READ_ONLY),
    wording("*address already in use", ERRNO, PORT),
    wording("*eaddrinuse: address already in use *", "Node.js, libuv", PORT),
    wording("*address already in use (os error 98)*", "Rust, std::io", PORT),
    wording("*bind() to * failed (98: address already in use)*", "nginx", PORT),
    wording("*java.net.bindexception: address already in use*", "Java", PORT),
    wording(
        "*could not resize shared memory segment *: no space left on device",
        "PostgreSQL",
        "the shared memory of the container is full: mount an emptyDir with medium: Memory at /dev/shm",
    ),
    wording("*no space left on device", ERRNO, DISK),
    wording("*no space left on device: '*", "Python", DISK),
    wording("*no space left on device (os error 28)*", "Rust, std::io", DISK),
    wording("*enospc: no space left on device, *", "Node.js, libuv", DISK),
    wording("*bind: permission denied", "Go, net", PERMISSION),
    wording("*/*: permission denied", ERRNO, PERMISSION),
    wording("*[errno 13] permission denied*", "Python", PERMISSION),
    wording("*eacces: permission denied, *", "Node.js, libuv", PERMISSION),
    wording("*permission denied (os error 13)*", "Rust, std::io", PERMISSION),
    wording("*(13: permission denied)*", "nginx", PERMISSION),
    wording("*/* (permission denied)", "Java", PERMISSION),
    wording("*java.nio.file.accessdeniedexception: /*", "Java", PERMISSION),
    wording("*: operation not permitted", ERRNO, CAPABILITY),
    wording("*[errno 1] operation not permitted*", "Python", CAPABILITY),
    wording("*eperm: operation not permitted, *", "Node.js, libuv", CAPABILITY),
    wording("*operation not permitted (os error 1)*", "Rust, std::io", CAPABILITY),
    wording("*(1: operation not permitted)*", "nginx", CAPABILITY),
    wording("exec /*: no such file or directory", "runc, libcontainer", INTERPRETER),
    wording("*error relocating *: *: symbol not found", "musl", LIBRARY),
    wording("*error loading shared library *: *", "musl", LIBRARY),
    wording("*error while loading shared libraries: *", "glibc", LIBRARY),
    wording("*: version `*' not found (required by *)", "glibc", LIBRARY),
    wording("*: no such file or directory", ERRNO, FILE),
    wording("*[errno 2] no such file or directory*", "Python", FILE),
    wording("*enoent: no such file or directory, *", "Node.js, libuv", FILE),
    wording("*no such file or directory (os error 2)*", "Rust, std::io", FILE),
    wording("*(2: no such file or directory)*", "nginx", FILE),
    wording("*/* (no such file or directory)", "Java", FILE),
    wording(
        "*java.lang.outofmemoryerror: java heap space*",
        "Java",
        "the heap of the JVM is too small: raise -Xmx or -XX:MaxRAMPercentage, and the memory limit with it",
    ),
    wording(
        "*javascript heap out of memory*",
        "Node.js",
        "the heap of Node.js is too small: raise --max-old-space-size, and the memory limit with it",
    ),
    wording("*dial tcp: lookup *: no such host", "Go, net", DNS),
    wording("*could not translate host name *", "libpq", DNS),
    wording("*getaddrinfo enotfound *", "Node.js", DNS),
    wording("*getaddrinfo eai_again *", "Node.js", DNS),
    wording("*java.net.unknownhostexception: *", "Java", DNS),
    wording("*dial tcp *: connect: connection refused", "Go, net", OTHER_SERVER),
    wording("*dial tcp *: i/o timeout", "Go, net", OTHER_SERVER),
    wording("*connect econnrefused *", "Node.js", OTHER_SERVER),
    wording("*java.net.connectexception: connection refused*", "Java", OTHER_SERVER),
    wording("*connection to server at * failed: connection refused*", "libpq", OTHER_SERVER),
    wording("*x509: certificate signed by unknown authority", "Go, crypto/x509", TRUST),
];
