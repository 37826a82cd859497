{{/* SPDX-License-Identifier: GPL-3.0-or-later */}}
{{/* Container that checks a release. Arguments: context, name, and arguments of files/check.py. */}}
{{- define "ipu-operator.check" -}}
{{- $context := index . 0 -}}
- name: {{ index . 1 }}
  image: {{ include "ipu-operator.checkImage" $context | quote }}
  imagePullPolicy: {{ $context.Values.admissionWebhooks.image.pullPolicy }}
  command: [python3, -c]
  args:
    - |
      {{- $context.Files.Get "files/check.py" | nindent 6 }}
    {{- range index . 2 }}
    - {{ . }}
    {{- end }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
{{- end -}}

{{/* Arguments of files/check.py for the webhooks, as a JSON list. */}}
{{- define "ipu-operator.checkWebhooks" -}}
{{- .Values.admissionWebhooks.enabled | ternary (list (printf "--webhooks=%s" (include "ipu-operator.fullname" .))) list | toJson -}}
{{- end -}}
