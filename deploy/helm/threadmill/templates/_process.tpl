{{/* Fails for values that the chart does not have: {values: map, path: string, known: list}. */}}
{{- define "threadmill.known" -}}
{{- $path := .path -}}
{{- $known := .known -}}
{{- range $name := keys .values | sortAlpha -}}
{{- if not (has $name $known) -}}
{{- fail (printf "The chart has no value %s%s. It has: %s." $path $name (join ", " $known)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "threadmill.labels" -}}
{ app.kubernetes.io/name: threadmill, app.kubernetes.io/component: {{ .role }}{{ if ne .root.Release.Name "threadmill" }}, app.kubernetes.io/instance: {{ .root.Release.Name }}{{ end }} }
{{- end -}}

{{/* The pod template of a role: {root, role: "api" or "worker", env: settings of the role}. */}}
{{- define "threadmill.pod" -}}
{{- $values := index .root.Values .role -}}
{{- $fixed := dict "THREADMILL_ROLE" .role "HOME" "/tmp" -}}
{{- $role := .role -}}
{{- range $name, $_ := $fixed -}}
{{- if hasKey $values.env $name -}}
{{- fail (printf "The chart sets %s: remove it from %s.env." $name $role) -}}
{{- end -}}
{{- end -}}
metadata:
  labels: {{ include "threadmill.labels" . }}
spec:
  {{- if and (eq .role "api") .root.Values.agentsNamespace }}
  serviceAccountName: {{ .root.Release.Name }}-api
  {{- else }}
  automountServiceAccountToken: false
  {{- end }}
  # Variables of Services in the namespace would look like settings.
  enableServiceLinks: false
  # As process 1, the service would have to reap the processes that its children leave.
  shareProcessNamespace: true
  terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - { name: {{ . | quote }} }
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  containers:
    - name: threadmill
      image: {{ printf "%s:%s" .root.Values.image.repository (toString .root.Values.image.tag) | quote }}
      ports:
        - { name: http, containerPort: 2024 }
      envFrom:
        - secretRef: { name: {{ required "Set secret to the name of a Secret with THREADMILL_DATABASE_URL, THREADMILL_ENCRYPTION_KEYS and API_KEYS." .root.Values.secret | quote }} }
      env:
        {{- range $name, $value := merge $fixed $values.env .env }}
        - { name: {{ $name }}, value: {{ toString $value | quote }} }
        {{- end }}
      startupProbe:
        httpGet: { path: /ok, port: http }
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: 300
      readinessProbe:
        httpGet: { path: /ok, port: http }
        periodSeconds: 5
        timeoutSeconds: 3
      # /ok fails while the database is unavailable, which a restart does not change.
      livenessProbe:
        tcpSocket: { port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      {{- if eq .role "api" }}
      lifecycle:
        # Meanwhile, load balancers remove the pod.
        preStop:
          exec: { command: [sleep, "5"] }
      {{- end }}
      resources: {{ toJson $values.resources }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: data, mountPath: /data }
        - { name: tmp, mountPath: /tmp }
  volumes:
    - { name: data, emptyDir: {} }
    - { name: tmp, emptyDir: {} }
{{- end -}}
