{{/* Metadata of an object. Takes root, name, and optionally cluster (true without a namespace),
labels and annotations. */}}
{{- define "app-health.metadata" -}}
{{- $root := .root -}}
{{- $metadata := dict "name" .name -}}
{{- if not .cluster }}{{ $_ := set $metadata "namespace" $root.Release.Namespace }}{{ end -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" $root.Release.Service "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_") -}}
{{- $default := dict "app.kubernetes.io/name" "app-health" -}}
{{- $_ := set $metadata "labels" (mergeOverwrite (dict) $default ($root.Values.commonLabels | default dict) (.labels | default dict) $own) -}}
{{- $annotations := mergeOverwrite (dict) ($root.Values.commonAnnotations | default dict) (.annotations | default dict) -}}
{{- if $annotations }}{{ $_ := set $metadata "annotations" $annotations }}{{ end -}}
{{- toYaml $metadata -}}
{{- end -}}

{{/* The reference of an image. Takes root and image. */}}
{{- define "app-health.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion | replace "+" "_" }}
{{- end -}}
{{- end -}}

{{/* Environment variables for a map of settings: maxStreams becomes APP_HEALTH_MAX_STREAMS. Without
a value, the program has its own default. */}}
{{- define "app-health.settings" -}}
{{- range $name, $value := . }}
{{- if not (kindIs "invalid" $value) }}
- name: APP_HEALTH_{{ if eq $name "statusPort" }}STATUSPORT{{ else }}{{ $name | snakecase | upper }}{{ end }}
  value: {{ if kindIs "slice" $value }}{{ join "," $value | quote }}{{ else if kindIs "float64" $value }}{{ int64 $value | quote }}{{ else }}{{ $value | toString | quote }}{{ end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Environment of a container. Takes own (YAML of the chart's variables) and extra: a variable of
extra replaces the one of the chart with the same name. */}}
{{- define "app-health.environment" -}}
{{- $names := list -}}
{{- range .extra }}{{ $names = append $names .name }}{{ end -}}
{{- $variables := list -}}
{{- range fromYamlArray .own -}}
{{- if not (has .name $names) }}{{ $variables = append $variables . }}{{ end -}}
{{- end -}}
{{- concat $variables (.extra | default list) | toYaml -}}
{{- end -}}

{{/* Fails if extraVolumes or extraVolumeMounts repeat one of the chart. Takes component, value (its
name in the values) and mounts (names of the chart's volumes and their paths). */}}
{{- define "app-health.checkVolumes" -}}
{{- range .component.extraVolumes -}}
{{- if hasKey $.mounts .name -}}
{{- fail (printf "%s.extraVolumes: the chart has a volume of the name %s; choose another name" $.value .name) -}}
{{- end -}}
{{- end -}}
{{- range .component.extraVolumeMounts -}}
{{- if has (clean .mountPath) (values $.mounts) -}}
{{- fail (printf "%s.extraVolumeMounts: the chart mounts a volume at %s; choose another mountPath" $.value .mountPath) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A duration such as 5s or 500ms as a number of milliseconds. */}}
{{- define "app-health.milliseconds" -}}
{{- if hasSuffix "ms" . -}}
{{ trimSuffix "ms" . | atoi }}
{{- else -}}
{{ trimSuffix "s" . | atoi | mul 1000 }}
{{- end -}}
{{- end -}}

{{/* Fields of a Pod that webhook and discovery have in common. Takes root, component (its values)
and name. */}}
{{- define "app-health.pod" -}}
serviceAccountName: {{ .component.serviceAccount.name | default .name | quote }}
{{- with .root.Values.priorityClass.name }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
# Otherwise kubelet sets variables such as APP_HEALTH_WEBHOOK_SERVICE_HOST, which look like settings.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ int64 .component.terminationGracePeriodSeconds }}
{{- if kindIs "slice" .component.topologySpreadConstraints }}
{{- with .component.topologySpreadConstraints }}
topologySpreadConstraints: {{ toYaml . | nindent 2 }}
{{- end }}
{{- else }}
topologySpreadConstraints:
- maxSkew: 1
  topologyKey: kubernetes.io/hostname
  # A node that is drained or tainted does not count, so its replica can start on another one.
  whenUnsatisfiable: DoNotSchedule
  nodeTaintsPolicy: Honor
  labelSelector: {matchLabels: {app.kubernetes.io/name: {{ .name }}}}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- with .component.podSecurityContext }}
securityContext: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .component.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .component.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .component.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* minAvailable or maxUnavailable of a disruption budget. Takes component and value (its name in the
values). Fails if the budget allows no eviction, because it would block the drain of each node. */}}
{{- define "app-health.disruptions" -}}
{{- $budget := .component.podDisruptionBudget -}}
{{- if not (kindIs "invalid" $budget.maxUnavailable) -}}
maxUnavailable: {{ toJson $budget.maxUnavailable }}
{{- else -}}
{{- $least := ternary 1 $budget.minAvailable (kindIs "invalid" $budget.minAvailable) -}}
{{- $replicas := int64 .component.replicas -}}
{{- /* In hundredths of a replica. Kubernetes rounds a percentage up to whole replicas. */}}
{{- $hundredths := ternary (mul (trimSuffix "%" (toString $least)) $replicas) (mul $least 100) (kindIs "string" $least) -}}
{{- if gt $hundredths (mul 100 (sub $replicas 1)) -}}
{{- fail (printf "%s.podDisruptionBudget.minAvailable: %v of %d replicas allows no eviction; set fewer, or more replicas" .value $least $replicas) -}}
{{- end -}}
minAvailable: {{ toJson $least }}
{{- end -}}
{{- end -}}

{{/* Fields of a container that webhook and discovery have in common. Takes root and component. */}}
{{- define "app-health.container" -}}
image: {{ include "app-health.image" (dict "root" .root "image" .root.Values.image) | quote }}
{{- with .root.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
livenessProbe:
  httpGet: {path: /healthz/live, port: monitoring}
readinessProbe:
  httpGet: {path: /healthz/ready, port: monitoring}
  periodSeconds: 2
{{- with .component.resources }}
resources: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .component.securityContext }}
securityContext: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Subjects of a binding. Takes root, component and name. */}}
{{- define "app-health.subjects" -}}
- {kind: ServiceAccount, name: {{ .component.serviceAccount.name | default .name | quote }}, namespace: {{ .root.Release.Namespace | quote }}}
{{- end -}}

{{/* The rule of a NetworkPolicy for port 15014: Prometheus, and kubelet with plugins that do not
always allow the probes of the Pod's own node. Without a source there is no rule, since one without
sources allows all. */}}
{{- define "app-health.monitoringRule" -}}
{{- if or .nodeCIDRs .monitoringNamespace -}}
# Metrics, and the probes of kubelet with plugins that do not always allow those.
- from:
  {{- range .nodeCIDRs }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
  {{- with .monitoringNamespace }}
  - namespaceSelector:
      matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}
  {{- end }}
  ports:
  - {protocol: TCP, port: monitoring}
{{- end -}}
{{- end -}}
