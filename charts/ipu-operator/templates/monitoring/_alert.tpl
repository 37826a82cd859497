{{/* SPDX-License-Identifier: GPL-3.0-or-later */}}

{{/*
An alert with the labels and annotations of all alerts of this project. Arguments: context, name, severity, kind of
object, duration, expression, summary. "SERIES" in the expression selects the series of this release.
*/}}
{{- define "ipu-operator.alert" -}}
{{- $context := index . 0 -}}
{{- $name := index . 1 -}}
{{- $job := default (printf "%s-metrics" (include "ipu-operator.fullname" $context)) $context.Values.prometheusRule.job -}}
{{- $series := printf "job=%q, namespace=%q" $job $context.Release.Namespace -}}
- alert: {{ $name }}
  expr: {{ index . 5 | replace "SERIES" $series | quote }}
  for: {{ index . 4 }}
  labels:
    severity: {{ index . 2 }}
    about: {{ index . 3 }}
  annotations:
    summary: {{ index . 6 | quote }}
    runbook_url: {{ printf "%s#%s" $context.Values.prometheusRule.runbook (lower $name) | quote }}
{{- end -}}
