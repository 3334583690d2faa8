//! The routes from the client to the application, and the processes on them.

use std::net::SocketAddr;

/// A route from the client to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Direct,
    /// An Envoy route without the filter.
    Plain,
    /// The filter as a WebAssembly module.
    Wasm,
    /// The filter as a dynamic module.
    Native,
    /// Both forms with connections to the application that are used again.
    WasmReuse,
    NativeReuse,
    /// Our agent with `--probes agent`, which kubelet probes without an Envoy in between.
    Agent,
    /// Istio's agent, likewise.
    PilotAgent,
}

impl Route {
    /// All routes, in the order in which they take turns.
    pub(crate) const ALL: [Self; 8] = [
        Self::Direct,
        Self::Plain,
        Self::Wasm,
        Self::Native,
        Self::WasmReuse,
        Self::NativeReuse,
        Self::Agent,
        Self::PilotAgent,
    ];
    /// The routes that are compared with the plain one.
    pub(crate) const COMPARED: [Self; 6] =
        [Self::Wasm, Self::Native, Self::WasmReuse, Self::NativeReuse, Self::Agent, Self::PilotAgent];
    /// The routes that are compared with pilot-agent.
    pub(crate) const OURS: [Self; 3] = [Self::Wasm, Self::Native, Self::Agent];

    /// Returns the name in the result table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Plain => "plain",
            Self::Wasm => "wasm",
            Self::Native => "native",
            Self::WasmReuse => "wasm with reuse",
            Self::NativeReuse => "native with reuse",
            Self::Agent => "agent",
            Self::PilotAgent => "pilot-agent",
        }
    }

    /// Returns the process between client and application; `None` for a direct route.
    pub(crate) fn process(self) -> Option<MeasuredProcess> {
        match self {
            Self::Direct => None,
            Self::Plain => Some(MeasuredProcess::PlainEnvoy),
            Self::Wasm => Some(MeasuredProcess::WasmEnvoy),
            Self::Native => Some(MeasuredProcess::NativeEnvoy),
            Self::WasmReuse => Some(MeasuredProcess::WasmReuseEnvoy),
            Self::NativeReuse => Some(MeasuredProcess::NativeReuseEnvoy),
            Self::Agent => Some(MeasuredProcess::Agent),
            Self::PilotAgent => Some(MeasuredProcess::PilotAgent),
        }
    }
}

/// Where a probe of a route is sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, path: &str) -> Self {
        Self { address, path: path.to_owned() }
    }

    /// Returns the probe of this container in a prober table.
    pub(crate) fn of_container(address: SocketAddr, container: &str) -> Self {
        Self { address, path: format!("/app-health/{container}/readyz") }
    }
}

/// A process whose CPU time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MeasuredProcess {
    /// Envoy with the plain listener alone.
    PlainEnvoy,
    /// Envoy with the probe listener, and the filter in this form.
    WasmEnvoy,
    NativeEnvoy,
    /// The same with connections that are used again.
    WasmReuseEnvoy,
    NativeReuseEnvoy,
    Agent,
    PilotAgent,
    Application,
    Oracle,
}

impl MeasuredProcess {
    /// Returns the name in the result table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PlainEnvoy => "Envoy",
            Self::WasmEnvoy => "Envoy with wasm",
            Self::NativeEnvoy => "Envoy with native",
            Self::WasmReuseEnvoy => "Envoy with wasm and reuse",
            Self::NativeReuseEnvoy => "Envoy with native and reuse",
            Self::Agent => "app-health-agent",
            Self::PilotAgent => "pilot-agent",
            Self::Application => "application",
            Self::Oracle => "kubelet's prober",
        }
    }
}
