//! Why the API server refuses to create a Pod.

use super::{Wording, wording};
use crate::finding::Code;

const LIMIT_RANGE: &str = "a LimitRange of the namespace limits it: kubectl describe limitrange. The limits of the sidecar count too";
const LIMITRANGER: &str = "plugin/pkg/admission/limitranger/admission.go";
const QUOTA: &str = "apiserver, admission/plugin/resourcequota/controller.go";
const WEBHOOK: &str = "look at that webhook: it refuses the Pods, or does not answer";
const POLICY: &str = "change the Pod template as the message says, or the policy";
const POLICY_WEBHOOK: &str =
    "that webhook refuses the Pods: change the Pod template as its message says, or the policy that it names";
const OWN_WEBHOOK: &str = "the webhook of app-health does not answer: kubectl get pod -n app-health-system. To create Pods without it, see docs/kubernetes.md";
const TIMEOUT: &str = "that webhook does not answer in time, or is not reached: does a firewall, a security group or a NetworkPolicy block the API server from its Pods and their port, or are they overloaded?";
const OWN_TIMEOUT: &str = "the webhook of app-health does not answer in time, or is not reached: does a firewall, a security group or a NetworkPolicy block the API server from port 15017 of its Pods in app-health-system? To create Pods without it, see docs/kubernetes.md";
const NATIVE: &str = "the sidecar has lost its restartPolicy: Always, which the API server drops before Kubernetes 1.29, and which a tool or another webhook may not know: inject again with the mode of a classic sidecar";
const CERTIFICATE: &str = "the API server does not trust the certificate of that webhook: it has expired, or the caBundle of its configuration is that of another one";
const OWN_CERTIFICATE: &str = "the API server does not trust the certificate of the webhook of app-health: renew it, and set the caBundle of its MutatingWebhookConfiguration to its CA";
const DISPATCHER: &str = "apiserver, admission/plugin/webhook";
const SERVICE_ACCOUNT: &str = "plugin/pkg/admission/serviceaccount/admission.go";

/// Patterns of the reason, which follows `pods "web-1-" is forbidden: `, or of the whole message.
pub(crate) const TABLE: &[(Code, Wording)] = &[
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*.webhook.app-health.io\": * x509: *",
            DISPATCHER,
            OWN_CERTIFICATE,
        ),
    ),
    (Code::Refused, wording("*failed calling webhook \"*\": * x509: *", DISPATCHER, CERTIFICATE)),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*.webhook.app-health.io\": *: context deadline exceeded",
            DISPATCHER,
            OWN_TIMEOUT,
        ),
    ),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*.webhook.app-health.io\": *: i/o timeout",
            DISPATCHER,
            OWN_TIMEOUT,
        ),
    ),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*.webhook.app-health.io\": *: connect: no route to host",
            DISPATCHER,
            OWN_TIMEOUT,
        ),
    ),
    (
        Code::Refused,
        wording("*failed calling webhook \"*.webhook.app-health.io\": *", DISPATCHER, OWN_WEBHOOK),
    ),
    (
        Code::Refused,
        wording("*failed calling webhook \"*\": *: context deadline exceeded", DISPATCHER, TIMEOUT),
    ),
    (Code::Refused, wording("*failed calling webhook \"*\": *: i/o timeout", DISPATCHER, TIMEOUT)),
    (
        Code::Refused,
        wording("*failed calling webhook \"*\": *: connect: no route to host", DISPATCHER, TIMEOUT),
    ),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*\": *(Client.Timeout exceeded while awaiting headers)",
            DISPATCHER,
            TIMEOUT,
        ),
    ),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*\": failed to call webhook: Post \"*\": *",
            DISPATCHER,
            "that webhook does not answer: do its Pods run, and does its Service have endpoints?",
        ),
    ),
    (
        Code::Refused,
        wording(
            "*failed calling webhook \"*\": *",
            DISPATCHER,
            "the call of that webhook fails: look at its log",
        ),
    ),
    (
        Code::Refused,
        wording("admission webhook \"*.kyverno.*\" denied the request*", "Kyverno", POLICY_WEBHOOK),
    ),
    (
        Code::Refused,
        wording("admission webhook \"*.gatekeeper.sh\" denied the request*", "Gatekeeper", POLICY_WEBHOOK),
    ),
    (
        Code::Refused,
        wording(
            "admission webhook \"*\" denied the request*",
            DISPATCHER,
            "that webhook refuses the Pods: change the Pod template as its message says, or the policy; a container that your template does not have is the sidecar",
        ),
    ),
    (
        Code::Refused,
        wording(
            "ValidatingAdmissionPolicy '*' with binding '*' denied request: *",
            "apiserver, admission/plugin/policy/validating",
            POLICY,
        ),
    ),
    (
        Code::Refused,
        wording(
            "unable to validate against any security context constraint: []",
            "OpenShift, apiserver-library-go, securitycontextconstraints/sccadmission",
            "the service account may use no security context constraint at all: grant it one (oc adm policy add-scc-to-user restricted-v2 -z NAME), or look at the ClusterRoleBinding of system:authenticated",
        ),
    ),
    (
        Code::Refused,
        wording(
            "unable to validate against any security context constraint: *",
            "OpenShift, apiserver-library-go, securitycontextconstraints/sccadmission",
            "OpenShift allows no security context constraint with these settings: let the service account use a constraint that allows the field which the message names (for a fixed runAsUser: oc adm policy add-scc-to-user nonroot-v2 -z NAME), or change that field, which may be one of the sidecar's template",
        ),
    ),
    (
        Code::Refused,
        wording(
            "violates PodSecurity \"*\": *",
            "pod-security-admission, admission/admission.go",
            "change the security context as the message says, or the Pod Security Standard of the namespace",
        ),
    ),
    (
        Code::Quota,
        wording(
            "persistentvolumeclaims \"*\" is forbidden: exceeded quota: *",
            QUOTA,
            "raise the quota of the storage, or lower the size of the claim",
        ),
    ),
    (
        Code::Quota,
        wording(
            "exceeded quota: *, requested: *, used: *, limited: *",
            QUOTA,
            "raise the quota, or lower the requests, which include those of the sidecar",
        ),
    ),
    (
        Code::Quota,
        wording(
            "failed quota: *: must specify *",
            QUOTA,
            "the quota requires requests and limits: set them for each container, and for the sidecar in the template",
        ),
    ),
    (
        Code::Quota,
        wording(
            "insufficient quota to match these scopes: *",
            QUOTA,
            "the namespace has no quota for this priority class: create one, or use another class",
        ),
    ),
    (Code::Refused, wording("*minimum * usage per Container is *", LIMITRANGER, LIMIT_RANGE)),
    (Code::Refused, wording("*minimum * usage per Pod is *", LIMITRANGER, LIMIT_RANGE)),
    (Code::Refused, wording("*maximum * usage per Container is *", LIMITRANGER, LIMIT_RANGE)),
    (Code::Refused, wording("*maximum * usage per Pod is *", LIMITRANGER, LIMIT_RANGE)),
    (Code::Refused, wording("* max limit to request ratio per * is *", LIMITRANGER, LIMIT_RANGE)),
    (
        Code::Refused,
        wording(
            "error looking up service account *: serviceaccount \"*\" not found",
            SERVICE_ACCOUNT,
            "create the service account in this namespace",
        ),
    ),
    (
        Code::Refused,
        wording(
            "no API token found for service account *",
            SERVICE_ACCOUNT,
            "the controller manager has not made the token yet; if it stays so, look at its log",
        ),
    ),
    (
        Code::Refused,
        wording(
            "no PriorityClass with name * was found",
            "plugin/pkg/admission/priority/admission.go",
            "create the PriorityClass, or correct priorityClassName",
        ),
    ),
    (
        Code::Refused,
        wording(
            "pod rejected: RuntimeClass \"*\" not found",
            "plugin/pkg/admission/runtimeclass/admission.go",
            "create the RuntimeClass, or correct runtimeClassName",
        ),
    ),
    (
        Code::Refused,
        wording(
            "unable to create new content in namespace * because it is being terminated",
            "apiserver, admission/plugin/namespace/lifecycle",
            "the namespace is being deleted: use another one",
        ),
    ),
    (
        Code::Refused,
        wording(
            "pod node label selector conflicts with its namespace node label selector",
            "plugin/pkg/admission/podnodeselector/admission.go",
            "the namespace sets another node selector: change nodeSelector of the Pod, or the annotation of the namespace",
        ),
    ),
    (
        Code::Refused,
        wording(
            "Pod \"*\" is invalid: *: must be less than or equal to * limit of *",
            "pkg/apis/core/validation",
            "correct the field that the message names: the request is greater than the limit, which may be the default of a LimitRange",
        ),
    ),
    (
        Code::Refused,
        wording(
            "PersistentVolumeClaim \"*\" is invalid: *",
            "apimachinery, api/errors",
            "correct the field of volumeClaimTemplates that the message names: create the StatefulSet again, as it cannot be changed",
        ),
    ),
    (
        Code::Refused,
        wording(
            "Pod \"*\" is invalid: *initContainers[*]*: Forbidden: may not be set for init containers*",
            "pkg/apis/core/validation/validation.go",
            NATIVE,
        ),
    ),
    (
        Code::Refused,
        wording(
            "Pod \"*\" is invalid: *",
            "apimachinery, api/errors",
            "correct the field of the Pod template that the message names",
        ),
    ),
    (Code::Refused, wording("admission webhook *", DISPATCHER, WEBHOOK)),
    (
        Code::Refused,
        wording(
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: *",
            "plugin/pkg/admission/gc/gc_admission.go",
            "the controller that creates the Pods lacks the right to update the finalizers of its own resource: correct its ClusterRole",
        ),
    ),
    (
        Code::Refused,
        wording(
            "Operation cannot be fulfilled on resourcequotas \"*\": *",
            QUOTA,
            "several requests have changed the quota at once: the controller tries again on its own",
        ),
    ),
    (
        Code::Refused,
        wording(
            "object is being deleted: pods \"*\" already exists",
            "apiserver, registry/generic/registry",
            "the old Pod of this name is still being deleted: explain that Pod",
        ),
    ),
    (
        Code::Refused,
        wording(
            "pods is forbidden: User \"*\" cannot create resource *",
            "apiserver, endpoints/handlers/responsewriters/errors.go",
            "the controller that creates the Pods lacks the right to: correct its ClusterRole",
        ),
    ),
];

/// Returns what follows the sentences of the controller and of the API server.
pub(crate) fn reason(message: &str) -> &str {
    let created = ["create Pod ", "create Claim "].into_iter().find_map(|begin| message.strip_prefix(begin));
    let message = match created.and_then(|rest| rest.split_once(" failed error: ")) {
        Some((_, reason)) => reason,
        None => message.strip_prefix("Error creating: ").unwrap_or(message),
    };
    // A StatefulSet creates the claims of a Pod before it.
    let claim = message.strip_prefix("failed to create PVC ").and_then(|rest| rest.split_once(": "));
    if let Some((_, reason)) = claim {
        return reason;
    }
    let object =
        ["pods \"", "persistentvolumeclaims \""].into_iter().find_map(|begin| message.strip_prefix(begin));
    object.and_then(|rest| rest.split_once("\" is forbidden: ")).map_or(message, |(_, reason)| reason)
}
