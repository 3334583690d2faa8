//! Rules about probes and hooks, with or without a sidecar.

use super::{Rule, Severity, rules};

rules! { PROBE_RULES:
    NAMED_PORT = "AH001" "named-port" Error,
    "a probe or hook names a port that its container does not declare",
    "kubelet resolves the name of a port in the same container only. If the container has no port of \
     this name, every probe fails.",
    "Declare a port of this name in the container, or use the number.";

    INVALID_PROBE = "AH002" "invalid-probe" Error,
    "the API server rejects the probe or hook",
    "The values break a rule of Kubernetes' validation: exactly one handler, ports from 1 to 65535, no \
     negative numbers, successThreshold 1 for livenessProbe and startupProbe, strings and numbers where \
     the type requires them, no probe in an ephemeral container. The object cannot be created.",
    "Correct the value that the message names.";

    SAME_HANDLER = "AH003" "same-handler" Warning,
    "livenessProbe and readinessProbe have the same handler, and liveness does not tolerate more \
     failures",
    "Both probes fail at the same time, so kubelet restarts a container that only needs a break from \
     its requests. Under load, one restart moves the load to the other replicas, and they follow. \
     Kubernetes' documentation recommends the same endpoint only with a higher failureThreshold for \
     the livenessProbe.",
    "Use an endpoint for the livenessProbe that only shows that the process runs, or raise the \
     failureThreshold of the livenessProbe above that of the readinessProbe.";

    STRICT_LIVENESS = "AH004" "strict-liveness" Warning,
    "the livenessProbe gives up before the readinessProbe",
    "periodSeconds times failureThreshold is lower for the livenessProbe than for the readinessProbe. \
     kubelet restarts the container before its Service stops sending requests to it.",
    "Raise periodSeconds or failureThreshold of the livenessProbe.";

    LONG_INITIAL_DELAY = "AH005" "long-initial-delay" Warning,
    "initialDelaySeconds is above 30, and there is no startupProbe",
    "A fixed delay is too long for a fast start, during which the Pod gets no requests and a failure \
     is not noticed, and too short for a slow one, which then restarts again and again.",
    "Declare a startupProbe whose periodSeconds times failureThreshold covers the slowest start, and \
     remove initialDelaySeconds.";

    SHORT_TIMEOUT = "AH006" "short-timeout" Warning,
    "timeoutSeconds is 1 for a probe that does more than one round trip",
    "HTTPS and gRPC need several round trips, and exec starts a process in the container. On a busy \
     node each can take more than a second, so a healthy container fails. 1 is also the default.",
    "Set timeoutSeconds to 3 or more.";

    SHORT_TOLERANCE = "AH007" "short-tolerance" Warning,
    "the livenessProbe does not survive a pause of the expected length",
    "With --expect-pause you say how long your application may stop, for example for garbage \
     collection or a backup. A pause that begins just before a probe fails as many probes as the \
     failureThreshold within (failureThreshold - 1) x periodSeconds + timeoutSeconds.",
    "Raise failureThreshold, periodSeconds or timeoutSeconds of the livenessProbe.";

    DEPENDENCY_IN_LIVENESS = "AH008" "dependency-in-liveness" Warning,
    "the path of the livenessProbe looks like a check of dependencies",
    "If a database or another service is down, a livenessProbe that checks it restarts all replicas, \
     which does not repair the dependency. Spring Boot's /actuator/health, for example, contains \
     databases and message brokers.",
    "Let the livenessProbe check the process only, for example with /livez or \
     /actuator/health/liveness, and check dependencies in the readinessProbe.";

    UNDECLARED_PORT = "AH009" "undeclared-port" Info,
    "a probe uses a port that no container declares",
    "Kubernetes allows it, but the port may be a mistake, and tools that read the declared ports, such \
     as meshes and network policies, do not know it.",
    "Check the number, and declare the port in the container.";

    HOST = "AH010" "host" Warning,
    "a probe or hook sets host",
    "kubelet connects to that host from the node instead of to the Pod. The verdict says nothing about \
     this Pod, and app-health leaves such a probe unchanged. A host of 127.0.0.1 is the node.",
    "Remove host. To send a Host header, use httpHeaders.";

    EXEC_IN_MESH = "AH011" "exec-in-mesh" Info,
    "an exec probe in a Pod with a sidecar of a mesh",
    "The command connects within the Pod and not through the proxy, so it does not show whether \
     clients reach the application. It also costs a process for each probe.",
    "Use httpGet or grpc; app-health answers both in a mesh with strict mutual TLS.";

    TCP_KNOWN_PROTOCOL = "AH012" "tcp-known-protocol" Warning,
    "a tcpSocket probe of a port that serves HTTP or gRPC",
    "The kernel accepts a connection even if the application hangs, and so does a sidecar that \
     captures the port: the probe succeeds. The name of the port, or another probe of the container, \
     shows the protocol.",
    "Use httpGet or grpc.";

    GRACE_PERIOD = "AH013" "grace-period" Warning,
    "a preStop hook or a drain takes as long as the grace period or longer",
    "terminationGracePeriodSeconds includes the preStop hook. When it ends, kubelet kills the \
     container, and the application has no time to finish its requests.",
    "Raise terminationGracePeriodSeconds above the hook and the drain together, or shorten them.";

    NO_READINESS = "AH014" "no-readiness-probe" Warning,
    "a Pod with ports has no readinessProbe",
    "The Pod gets requests as soon as its containers run, before the application listens, and during a \
     rolling update too.",
    "Declare a readinessProbe in the container that serves requests.";

    TIMEOUT_ABOVE_PERIOD = "AH015" "timeout-above-period" Info,
    "timeoutSeconds is above periodSeconds",
    "kubelet does not start a probe while the previous one runs, so a hanging application is probed \
     less often than periodSeconds says, and failures take effect later.",
    "Lower timeoutSeconds, or raise periodSeconds.";

    UNKNOWN_CODE = "AH016" "unknown-code" Warning,
    "the annotation app-health.io/lint-ignore contains an unknown code, or is misspelt",
    "The annotation does not suppress what it was written for.",
    "Write the annotation app-health.io/lint-ignore with codes of this page, separated by commas: \
     \"AH003,AH007\".";

    UNKNOWN_FIELD = "AH017" "unknown-field" Error,
    "a container, probe or hook has a field that Kubernetes does not know",
    "kubectl and most other tools ask the API server to reject unknown fields. Without that, it drops \
     them silently: a misspelt readinessProbe is no readinessProbe, and a misspelt timeoutSeconds is 1.",
    "Correct the name of the field, or its indentation.";

    INVALID_PORT = "AH018" "invalid-port" Error,
    "the API server rejects a port of a container",
    "The values break a rule of Kubernetes' validation: containerPort from 1 to 65535, a name of at most \
     15 lower-case letters, digits and hyphens, and no name twice in a container. The object cannot be \
     created.",
    "Correct the value that the message names.";

    API_VERSION = "AH019" "api-version" Error,
    "the kind does not exist in this apiVersion",
    "The API server rejects the object, and app-health does not find its Pod.",
    "Correct the apiVersion or the kind as the message says.";

    UNKNOWN_HANDLER = "AH020" "unknown-handler" Error,
    "a probe or hook has a handler that Kubernetes does not know",
    "The API server drops the handler or rejects the object. If the handler is one of a newer Kubernetes, \
     app-health does not know it either: the injector leaves the probe unchanged, and no rule checks the handler.",
    "Correct the name of the handler, or use a version of app-health that knows it.";

    CLIENT_ADDRESS = "AH021" "client-address" Info,
    "the application may answer certain client addresses only, and sees another one through the sidecar",
    "Behind a sidecar, probes come from 127.0.0.6 or ::6 and not from the node. An environment variable of \
     this container looks like a list of permitted addresses. If the path of the probe is restricted by \
     it, the application answers 403 to a probe that kubelet alone could send, or 200 to one that it could not.",
    "Let the path of the probe answer any client, or permit 127.0.0.6 and ::6 too.";
}
