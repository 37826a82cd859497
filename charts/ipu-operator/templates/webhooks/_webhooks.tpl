{{/* SPDX-License-Identifier: GPL-3.0-or-later */}}
{{/* Common parts of the webhook configurations. */}}

{{/* Namespaces with webhooks as a JSON list, empty for all. */}}
{{- define "ipu-operator.scope" -}}
{{- include "ipu-operator.list" (default .Values.controller.watchNamespaces .Values.admissionWebhooks.scope) -}}
{{- end -}}

{{- define "ipu-operator.webhookMetadata" -}}
name: {{ include "ipu-operator.fullname" . }}
labels:
  {{- include "ipu-operator.labels" (list . "controller-manager") | nindent 2 }}
{{- if .Values.admissionWebhooks.certManager.enabled }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "ipu-operator.fullname" . }}-webhook-certificate
{{- end }}
{{- end -}}

{{/* Arguments: context, and path. The operator or cert-manager writes the CA certificate. */}}
{{- define "ipu-operator.client" -}}
{{- $context := index . 0 -}}
{{- $webhooks := $context.Values.admissionWebhooks -}}
clientConfig:
  service:
    name: {{ include "ipu-operator.fullname" $context }}-webhook-svc
    namespace: {{ $context.Release.Namespace }}
    path: {{ index . 1 }}
    port: {{ int $webhooks.service.servicePort }}
  {{- if eq (include "ipu-operator.certificates" $context) "user" }}
  caBundle: {{ b64enc $webhooks.caCertificate }}
  {{- end }}
{{- end -}}

{{- define "ipu-operator.webhook" -}}
admissionReviewVersions: [v1, v1beta1]
sideEffects: None
failurePolicy: {{ .Values.admissionWebhooks.failurePolicy }}
timeoutSeconds: {{ int .Values.admissionWebhooks.timeoutSeconds }}
{{- end -}}

{{- define "ipu-operator.jobRules" -}}
rules:
  - apiGroups: [graphcore.ai]
    apiVersions: [v1alpha1]
    resources: [ipujobs]
    operations: [CREATE, UPDATE]
    scope: Namespaced
{{- end -}}
