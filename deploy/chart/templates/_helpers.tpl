{{- define "parlor.name" -}}
{{- if contains "parlor" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-parlor" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "parlor.selector" -}}
app.kubernetes.io/name: parlor
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "parlor.labels" -}}
{{ include "parlor.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "parlor.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "parlor.name" .) }}
{{- end }}
