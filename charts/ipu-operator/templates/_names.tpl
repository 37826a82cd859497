{{/* SPDX-License-Identifier: GPL-3.0-or-later */}}
{{/* Names, labels, images and accounts. */}}

{{- define "ipu-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end -}}

{{/*
First part of the names of all objects. Names of Services have at most 63 characters, so that 44 remain with the longest
suffix. Longer names end with a digest.
*/}}
{{- define "ipu-operator.fullname" -}}
{{- $default := printf "%s-%s" .Release.Name (include "ipu-operator.name" .) -}}
{{- $name := coalesce .Values.fullnameOverride .Values.fullNameOverride $default -}}
{{- if gt (len $name) 44 -}}
{{- printf "%s-%s" (trunc 35 $name | trimSuffix "-" | trimSuffix ".") (sha256sum $name | trunc 8) -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{/* Labels of an object. Arguments: context, and component. */}}
{{- define "ipu-operator.labels" -}}
{{- $context := index . 0 -}}
helm.sh/chart: {{ printf "%s-%s" $context.Chart.Name $context.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ $context.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $context.Release.Service }}
app.kubernetes.io/part-of: ipu-operator
{{ include "ipu-operator.selector" . }}
{{- end -}}

{{/* Labels that select the pods of a component. Arguments: context, and component. */}}
{{- define "ipu-operator.selector" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: {{ include "ipu-operator.name" $context | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "ipu-operator.tag" -}}
{{- default .Chart.AppVersion .Values.controller.image.tag -}}
{{- end -}}

{{/* Images of the programs. The published default of their repositories is empty. */}}
{{- define "ipu-operator.managerRepository" -}}
{{- default "localhost/openipu/ipu-operator" .Values.controller.image.repository -}}
{{- end -}}

{{- define "ipu-operator.managerImage" -}}
{{- printf "%s:%s" (include "ipu-operator.managerRepository" .) (include "ipu-operator.tag" .) -}}
{{- end -}}

{{- define "ipu-operator.proxyImage" -}}
{{- printf "%s:%s" (default "localhost/openipu/gc-proxy" .Values.vipuProxy.image.repository) (default .Chart.AppVersion .Values.vipuProxy.image.tag) -}}
{{- end -}}

{{/* Image of the job that waits for the webhooks, and of the test. */}}
{{- define "ipu-operator.checkImage" -}}
{{- $image := .Values.admissionWebhooks.image -}}
{{- printf "%s:%s" (default (include "ipu-operator.managerRepository" .) $image.repository) (default (include "ipu-operator.tag" .) $image.tag) -}}
{{- end -}}

{{/* Image of the init container of launchers. */}}
{{- define "ipu-operator.launcherImage" -}}
{{- $global := .Values.global -}}
{{- if or (contains ":" (base $global.launcherImage)) (contains "@" $global.launcherImage) -}}
{{- $global.launcherImage -}}
{{- else -}}
{{- $tag := default .Chart.AppVersion $global.launcherImageTag -}}
{{- $kubectl := empty $global.kubectlVersion | ternary "" (printf "-kubectl%v" $global.kubectlVersion) -}}
{{- printf "%s:%s%s" $global.launcherImage $tag $kubectl -}}
{{- end -}}
{{- end -}}

{{/* Names of the Secrets for images, as a JSON list. */}}
{{- define "ipu-operator.pullSecrets" -}}
{{- $names := list -}}
{{- $given := .Values.global.imagePullSecrets -}}
{{- if kindIs "map" $given -}}{{- $given = list $given -}}{{- end -}}
{{- range $given -}}
{{- $names = append $names (kindIs "map" . | ternary (kindIs "map" . | ternary . dict).name .) -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* Field imagePullSecrets of a pod. */}}
{{- define "ipu-operator.imagePullSecrets" -}}
{{- with include "ipu-operator.pullSecrets" . | fromJsonArray }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ipu-operator.managerAccount" -}}
{{- $account := .Values.controller.serviceAccount -}}
{{- $default := $account.create | ternary (printf "%s-controller-manager" (include "ipu-operator.fullname" .)) "default" -}}
{{- coalesce $account.name .Values.controllers.serviceAccount.name $default -}}
{{- end -}}

{{- define "ipu-operator.proxyAccount" -}}
{{- $account := .Values.vipuProxy.serviceAccount -}}
{{- $default := $account.create | ternary (printf "%s-vipu-proxy" (include "ipu-operator.fullname" .)) "default" -}}
{{- coalesce $account.name $default -}}
{{- end -}}

{{/* URL of the proxy, for pods of all namespaces. The namespace is that of the pod with these arguments. */}}
{{- define "ipu-operator.proxyURL" -}}
{{- $port := int (include "ipu-operator.proxy" . | fromYaml).service.port -}}
{{- printf "http://%s-vipu-proxy.$(POD_NAMESPACE).svc" (include "ipu-operator.fullname" .) -}}
{{- if ne $port 80 -}}{{ printf ":%d" $port }}{{- end -}}
{{- end -}}

{{/* Type of a Service, in any spelling: the published table has clusterIP. */}}
{{- define "ipu-operator.serviceType" -}}
{{- get (dict "clusterip" "ClusterIP" "nodeport" "NodePort" "loadbalancer" "LoadBalancer") (lower .) -}}
{{- end -}}
