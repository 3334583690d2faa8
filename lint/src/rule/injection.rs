//! Rules about what `app-health inject` refuses or warns about.

use super::{HOST, NAMED_PORT, Rule, Severity, rules};
use injector::warning::Code;

rules! { INJECTION_RULES:
    INVALID_OBJECT = "AH100" "invalid-object" Error,
    "the object is not a workload that can be injected",
    "A field has another type than in Kubernetes, for example containers that are not a list. The API \
     server rejects the object, and app-health inject refuses the file.",
    "Correct the field that the message names.";

    ANNOTATION = "AH101" "annotation" Warning,
    "a label or annotation of the injection has an invalid value",
    "The injector uses the default instead of the value.",
    "Correct the value as the message says.";

    BEFORE_PROXY = "AH102" "before-proxy" Warning,
    "a probe or hook of a sidecar that starts before the proxy",
    "The proxy cannot answer yet, so the injector leaves the probe unchanged. With strict mutual TLS it \
     fails.",
    "Put the proxy first, as a native sidecar.";

    HANDLER = "AH103" "handler" Warning,
    "a probe or hook has a field that the injector does not know",
    "Its meaning would be lost, so the injector leaves the probe unchanged.",
    "Remove the field, or probe without the sidecar.";

    HOLD = "AH104" "hold" Info,
    "hold is disabled, but a native sidecar starts first anyway",
    "The setting has no effect.",
    "Remove holdApplicationUntilProxyStarts: false, or use a classic sidecar.";

    HOOK_EARLY = "AH105" "hook-early" Warning,
    "a postStart hook may run before the proxy is ready",
    "The hook would fail and kubelet would restart the container, so the injector leaves it unchanged.",
    "Use a native sidecar, or holdApplicationUntilProxyStarts.";

    HOOK_KEPT = "AH106" "hook-kept" Info,
    "the Pod declares a hook of the sidecar",
    "The hook replaces that of the injector, which waits until the proxy is ready or drains it.",
    "Add app-health-agent wait or app-health-agent drain to it.";

    HOOK_TCP = "AH107" "hook-tcp" Error,
    "a hook uses tcpSocket",
    "The API server accepts it, but kubelet does not support it: every such hook fails, and after a \
     failed postStart hook kubelet restarts the container.",
    "Use exec, httpGet or sleep.";

    HOST_NETWORK = "AH108" "host-network" Warning,
    "the Pod asks for injection and uses the network of the node",
    "The status port would be a port of the node, so the injector skips the Pod.",
    "Remove hostNetwork, or the request for injection.";

    INIT = "AH109" "init-container" Error,
    "an ordinary init container has a probe or a hook",
    "The API server rejects it, except in an init container with restartPolicy: Always.",
    "Remove the probe, or set restartPolicy: Always if the container shall keep running.";

    JOB = "AH110" "job" Warning,
    "a classic sidecar in a Job",
    "The sidecar keeps running when the work is done, so the Job does not complete.",
    "Use a native sidecar, or end it with app-health-agent quit.";

    MALFORMED = "AH111" "malformed" Warning,
    "the filter cannot accept a value of the probe",
    "One invalid entry would make the filter reject all probes of the Pod, so the injector leaves this \
     one unchanged.",
    "Correct the value that the message names.";

    NAME = "AH112" "container-name" Error,
    "a container's name is missing, not unique or not valid",
    "The API server rejects it, and the injector leaves the probes of the container unchanged.",
    "Give each container a unique name of lower-case letters, digits and hyphens.";

    NO_SIDECAR = "AH113" "no-sidecar" Warning,
    "the Pod asks for injection, but the mode is rewrite-only",
    "With --mode rewrite-only no sidecar is injected, so the Pod stays without one.",
    "Use --mode auto, or add the sidecar to the Pod.";

    ORPHAN = "AH114" "orphan" Error,
    "a probe targets the proxy, which has no entry for it",
    "The Pod was copied from an injected one without its prober table. The proxy answers each such \
     probe with 404.",
    "Apply the original manifest instead of a copy of an injected Pod.";

    OTHER_INJECTOR = "AH115" "other-injector" Info,
    "the Pod has Istio's sidecar",
    "Istio handles the probes, so app-health skips the Pod.",
    "Use one of the two, or --sidecar-name istio-proxy.";

    OWN_PORT = "AH116" "own-port" Warning,
    "a probe targets a port of the proxy",
    "The probe would check the proxy and not the application, so the injector leaves it unchanged.",
    "Probe a port of the application.";

    PORT_CLASH = "AH117" "port-clash" Warning,
    "a container declares a port of the proxy",
    "Only one of the two can listen on it, so the injector leaves the Pod unchanged.",
    "Use another port in the container, or another status port.";

    SIDECAR = "AH118" "sidecar" Warning,
    "a container with the sidecar's name is not a sidecar, or not unique",
    "The injector cannot tell which container is the proxy, and leaves the Pod unchanged.",
    "Rename the container, or set restartPolicy: Always.";

    STATUS_PORT = "AH119" "status-port" Warning,
    "the status port is 0",
    "The injector does not rewrite the probes.",
    "Remove the annotation, or set sidecar.istio.io/rewriteAppHTTPProbers to false if that is intended.";

    TABLE = "AH120" "table" Warning,
    "the prober table of the sidecar cannot be read",
    "The injector cannot add entries to it, so it rewrites no probe of the Pod.",
    "Correct ISTIO_KUBE_APP_PROBERS, or remove it.";

    TABLE_SIZE = "AH121" "table-size" Warning,
    "the prober table would exceed 120 KiB",
    "The kernel limits the size of an environment variable, so the injector rewrites no probe of the \
     Pod.",
    "Shorten the headers of the probes.";

    TEMPLATE_CHANGED = "AH122" "template-changed" Info,
    "the sidecar was injected from another template",
    "The sidecar in the Pod is not the one that the injector would add now.",
    "Inject the original manifest again.";

    TEMPLATE_NAME = "AH123" "template-name" Warning,
    "a name of the sidecar's template is already used in the Pod",
    "Adding the sidecar would change the meaning of that name, so the injector leaves the Pod \
     unchanged.",
    "Rename the container or the volume.";

    POD_RESOURCES = "AH125" "pod-resources" Warning,
    "the resources of the Pod are too low for the sidecar",
    "spec.resources limits what all containers use together, and the API server rejects a Pod whose \
     containers request more. The injector never changes these limits, so it leaves the Pod unchanged.",
    "Raise the limit that the message names by what the sidecar requests, or lower the requests of the \
     sidecar.";

    QOS = "AH126" "qos" Warning,
    "the sidecar changes the QoS class of the Pod",
    "A Pod that is no longer Guaranteed loses its exclusive CPUs and is evicted earlier.",
    "Let the sidecar that the Pod declares have equal requests and limits of CPU and memory.";

    SECURITY_CONTEXT = "AH127" "security-context" Warning,
    "the sidecar cannot start with the security context",
    "kubelet does not start a container that has runAsNonRoot and the user 0, so the injector leaves \
     the Pod unchanged.",
    "Remove runAsUser: 0 from the field that the message names, or set the user in the template.";

    ANNOTATION_SIZE = "AH128" "annotation-size" Warning,
    "the annotations would exceed 256 KiB",
    "The injector records the original probes in an annotation, and the API server rejects larger \
     annotations. So it leaves the Pod unchanged.",
    "Shorten the annotations or the headers of the probes.";

    WINDOWS = "AH129" "windows" Info,
    "the Pod runs on Windows",
    "The sidecar needs Linux, so the injector skips the Pod, and kubelet probes the application \
     directly.",
    "Set the label sidecar.istio.io/inject to false to show that this is intended.";
}

/// Returns the rule for a warning of the injector.
pub(crate) fn of_warning(code: Code) -> &'static Rule {
    match code {
        Code::Annotation => &ANNOTATION,
        Code::AnnotationSize => &ANNOTATION_SIZE,
        Code::BeforeProxy => &BEFORE_PROXY,
        Code::Handler => &HANDLER,
        Code::Hold => &HOLD,
        Code::HookEarly => &HOOK_EARLY,
        Code::HookKept => &HOOK_KEPT,
        Code::HookTcp => &HOOK_TCP,
        Code::Host => &HOST,
        Code::HostNetwork => &HOST_NETWORK,
        Code::Init => &INIT,
        Code::Job => &JOB,
        Code::Malformed => &MALFORMED,
        Code::Name => &NAME,
        Code::NamedPort => &NAMED_PORT,
        Code::NoSidecar => &NO_SIDECAR,
        Code::Orphan => &ORPHAN,
        Code::OtherInjector => &OTHER_INJECTOR,
        Code::OwnPort => &OWN_PORT,
        Code::PodResources => &POD_RESOURCES,
        Code::PortClash => &PORT_CLASH,
        Code::Qos => &QOS,
        Code::SecurityContext => &SECURITY_CONTEXT,
        Code::Sidecar => &SIDECAR,
        Code::StatusPort => &STATUS_PORT,
        Code::Table => &TABLE,
        Code::TableSize => &TABLE_SIZE,
        Code::TemplateChanged => &TEMPLATE_CHANGED,
        Code::TemplateName => &TEMPLATE_NAME,
        Code::Windows => &WINDOWS,
    }
}
