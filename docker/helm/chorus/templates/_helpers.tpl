{{- define "chorus.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "chorus.labels" -}}
app.kubernetes.io/name: chorus
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "chorus.metadataLabels" -}}
{{ include "chorus.labels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "chorus.image" -}}
{{- $image := index .root.Values.images .image -}}
image: {{ printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) | quote }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
{{- end }}

{{- define "chorus.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.images.pullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "chorus.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "chorus.env" -}}
{{- $values := .root.Values -}}
- {name: CHORUS_ENGINE, value: {{ $values.engine | quote }}}
- {name: CHORUS_BASE_URL, value: {{ $values.baseUrl | quote }}}
- {name: CHORUS_ALLOWED_HOSTS, value: {{ join "," (concat (list (urlParse $values.baseUrl).hostname "localhost") $values.allowedHosts) | quote }}}
- {name: CHORUS_TRUSTED_PROXIES, value: {{ join "," $values.trustedProxies | quote }}}
- {name: CHORUS_SECRET_KEY_FILE, value: /secrets/secret_key}
- {name: CHORUS_PEPPERS_FILE, value: /secrets/peppers}
- {name: CHORUS_METRICS_TOKEN_FILE, value: /secrets/metrics_token}
- {name: DATABASE_URL_FILE, value: /secrets/database_url}
- {name: REDIS_URL_FILE, value: /secrets/redis_url}
- {name: S3_ACCESS_KEY_ID_FILE, value: /secrets/s3_access_key_id}
- {name: S3_SECRET_ACCESS_KEY_FILE, value: /secrets/s3_secret_access_key}
- {name: S3_ENDPOINT_URL, value: {{ $values.s3.endpointUrl | quote }}}
- {name: S3_PUBLIC_URL, value: {{ $values.s3.publicUrl | quote }}}
- {name: S3_BUCKET, value: {{ $values.s3.bucket | quote }}}
- {name: S3_REGION, value: {{ $values.s3.region | quote }}}
- {name: CHORUS_EMAIL_HOST, value: {{ $values.email.host | quote }}}
- {name: CHORUS_EMAIL_PORT, value: {{ $values.email.port | quote }}}
- {name: CHORUS_EMAIL_USER, value: {{ $values.email.user | quote }}}
- {name: CHORUS_EMAIL_FROM, value: {{ $values.email.from | quote }}}
{{- if $values.email.passwordFromSecret }}
- {name: CHORUS_EMAIL_PASSWORD_FILE, value: /secrets/email_password}
{{- end }}
{{- range $name, $value := merge (dict) (default (dict) .more) $values.env }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "chorus.mounts" -}}
- {name: secrets, mountPath: /secrets, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "chorus.volumes" -}}
- name: secrets
  secret: {secretName: {{ .Values.existingSecret | quote }}, defaultMode: 0440}
- name: tmp
  emptyDir: {sizeLimit: 4Gi}
{{- end }}

{{- /* "yes" where a pool has workers; an error where its image cannot speak with the engine. */}}
{{- define "chorus.poolIsOn" -}}
{{- $engines := dict "cpuWorker" (list "kokoro" "hibari" "remote") "gpuWorker" (list "cosyvoice3") -}}
{{- if has .root.Values.engine (index $engines .pool.image) -}}
{{- if .pool.enabled }}yes{{ end -}}
{{- else if eq (toString .pool.enabled) "true" -}}
{{- fail (printf "workerPools.%s: the image %s cannot speak with the engine %s. Set enabled: auto or false there, or another engine." .name .pool.image .root.Values.engine) -}}
{{- end -}}
{{- end }}

{{- /* What the workers of a pool may take, for a query: its engine, and the teams that are assigned to its CHORUS_POOL, or
to none. Nothing of a suspended team is taken. */}}
{{- define "chorus.poolTakes" -}}
{{- $serves := get (merge (dict) (default (dict) .pool.env) .root.Values.env) "CHORUS_POOL" | toString -}}
engine = '{{ .root.Values.engine }}'
AND team_id {{ if not $serves }}NOT {{ end }}IN
(SELECT team_id FROM synthesis_teampool{{ if $serves }} WHERE pool_id = '{{ $serves }}'{{ end }})
AND team_id NOT IN (SELECT id FROM accounts_team WHERE suspended_at IS NOT NULL)
{{- end }}

{{- /* The port of each address in a list of http addresses, as words. */}}
{{- define "chorus.ports" -}}
{{- range . }}
{{- with trim . }}
{{- $url := urlParse . }}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" }}
{{- printf " %s" (default (ternary "80" "443" (eq $url.scheme "http")) $port) }}
{{- end }}
{{- end }}
{{- end }}
