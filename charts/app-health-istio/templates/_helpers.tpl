{{/* Metadata of an object without a namespace. Takes root and name. */}}
{{- define "app-health-istio.metadata" -}}
{{- $root := .root -}}
{{- $metadata := dict "name" .name -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict "helm.sh/chart" $chart "app.kubernetes.io/managed-by" $root.Release.Service "app.kubernetes.io/instance" $root.Release.Name "app.kubernetes.io/version" ($root.Chart.AppVersion | replace "+" "_") -}}
{{- $default := dict "app.kubernetes.io/name" "app-health" -}}
{{- $_ := set $metadata "labels" (mergeOverwrite (dict) $default ($root.Values.commonLabels | default dict) $own) -}}
{{- with $root.Values.commonAnnotations }}{{ $_ := set $metadata "annotations" . }}{{ end -}}
{{- toYaml $metadata -}}
{{- end -}}

{{/* The reference of the image. */}}
{{- define "app-health-istio.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion | replace "+" "_" }}
{{- end -}}
{{- end -}}
{{- end -}}
