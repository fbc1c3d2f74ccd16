{{- define "ibwarden.name" -}}
{{ printf "%s-ibwarden" .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "ibwarden.selector" -}}
app.kubernetes.io/name: ibwarden
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "ibwarden.labels" -}}
{{ include "ibwarden.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}
