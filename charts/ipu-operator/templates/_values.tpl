{{/* SPDX-License-Identifier: GPL-3.0-or-later */}}
{{/* Values with several names, and checks that the schema cannot express. */}}

{{/* Values of the proxy as YAML. Older names replace them if they are set. */}}
{{- define "ipu-operator.proxy" -}}
{{- $values := .Values -}}
{{- $proxy := deepCopy $values.vipuProxy -}}
{{- range $older, $name := dict "podAnnotations" "podAnnotations" "podSecurityPolicyContext" "podSecurityContext" "securityContext" "securityContext" "resources" "resources" "nodeSelector" "nodeSelector" "tolerations" "tolerations" "affinity" "affinity" "proxyPort" "proxyPort" -}}
{{- with index $values $older -}}
{{- $_ := set $proxy $name . -}}
{{- end -}}
{{- end -}}
{{- range $name := list "type" "port" -}}
{{- with index $values.service $name -}}
{{- $_ := set $proxy.service $name . -}}
{{- end -}}
{{- end -}}
{{- toYaml $proxy -}}
{{- end -}}

{{/* Namespaces of a value that is a list, or a text with commas. As a JSON list. */}}
{{- define "ipu-operator.list" -}}
{{- $given := kindIs "string" . | ternary (splitList "," (toString .)) . -}}
{{- $names := list -}}
{{- range $given -}}
{{- $names = append $names (trim .) -}}
{{- end -}}
{{- toJson (compact $names) -}}
{{- end -}}

{{/* Names of all values on the first level. Others are parts of a list of V-IPU controllers, or mistakes. */}}
{{- define "ipu-operator.known" -}}
admissionWebhooks affinity controller controllers extendedScheduler fullNameOverride fullnameOverride global ipuVisibility nameOverride networkPolicy nodeSelector podAnnotations podSecurityPolicyContext prometheusRule proxyPort resources securityContext service serviceMonitor tolerations userRoles vipuCLusterName vipuClusterName vipuControllers vipuProxy vipuServerAddr vipuServerPort worker
{{- end -}}

{{- define "ipu-operator.knownGlobals" -}}
imagePullSecrets kubectlVersion launcherImage launcherImagePullPolicy launcherImageTag listenAddress vipuControllers
{{- end -}}

{{/*
The rest of a list of V-IPU controllers, one per line. Helm splits --set vipuControllers=a:1:k=v,b:2:k=w at the comma into
two values, and the name of the second one at its dots. Arguments: path, value, prefix of its full name, and
whether other values are mistakes. They are none in a chart that depends on this one: it has values of its own in global,
and its condition.
*/}}
{{- define "ipu-operator.rest" -}}
{{- $path := index . 0 -}}
{{- $value := index . 1 -}}
{{- $prefix := index . 2 -}}
{{- $strict := index . 3 -}}
{{- if and $value (kindIs "map" $value) -}}
{{- range $key, $each := $value -}}
{{- include "ipu-operator.rest" (list (printf "%s.%s" $path $key) $each $prefix $strict) -}}
{{- end -}}
{{- else -}}
{{- $entry := printf "%s=%v" $path $value -}}
{{- if and (not (kindIs "map" $value)) (regexMatch "^[^:]+:[0-9]{1,5}:[^:=]+=[^:=]*$" $entry) -}}
{{- printf "%s\n" $entry -}}
{{- else if $strict -}}
{{- fail (printf "Unknown value '%s%s'. See the list of values in README.md of the chart." $prefix $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* V-IPU controllers of a value and of the unknown values beside it, one per line. Arguments: value, values, known
names, prefix of their full names, and whether other values are mistakes. */}}
{{- define "ipu-operator.entries" -}}
{{- $given := index . 0 -}}
{{- $values := index . 1 -}}
{{- $known := splitList " " (index . 2) -}}
{{- $prefix := index . 3 -}}
{{- $strict := index . 4 -}}
{{- range (include "ipu-operator.list" $given | fromJsonArray) -}}
{{- printf "%s\n" . -}}
{{- end -}}
{{- range $name, $value := $values -}}
{{- if not (has $name $known) -}}
{{- include "ipu-operator.rest" (list $name $value $prefix $strict) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* V-IPU controllers, one per line. Fails for invalid ones and for unknown values. */}}
{{- define "ipu-operator.controllers" -}}
{{- $values := .Values -}}
{{- $first := include "ipu-operator.entries" (list $values.vipuControllers $values (include "ipu-operator.known" .) "" .Chart.IsRoot) -}}
{{- $second := include "ipu-operator.entries" (list $values.global.vipuControllers $values.global (include "ipu-operator.knownGlobals" .) "global." .Chart.IsRoot) -}}
{{- if and $values.vipuControllers $values.vipuServerAddr -}}
{{- fail "vipuControllers and vipuServerAddr exclude each other. Set one of them." -}}
{{- end -}}
{{- $single := "" -}}
{{- if $values.vipuServerAddr -}}
{{- $single = printf "%s:%d\n" $values.vipuServerAddr (int $values.vipuServerPort) -}}
{{- end -}}
{{- if and $first (not $values.vipuControllers) -}}
{{- fail (printf "Unknown value '%s'. See the list of values in README.md of the chart." (splitList "=" $first | first)) -}}
{{- end -}}
{{- range $entry := splitList "\n" (coalesce $first $single $second) -}}
{{- if and $entry (not (regexMatch "^(\\[[0-9A-Fa-f:.]+\\]|[^:\\[\\]=[:space:]]+):[0-9]{1,5}(:[^:=[:space:]]+=[^:=[:space:]]*)?$" $entry)) -}}
{{- fail (printf "'%s' is no V-IPU controller. Write it as host:port:key=value, with the label of its nodes." $entry) -}}
{{- end -}}
{{- if $entry -}}
{{- printf "- %s\n" $entry -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the certificate of the webhooks comes from: operator, cert-manager or user. Fails if this is not clear. */}}
{{- define "ipu-operator.certificates" -}}
{{- $webhooks := .Values.admissionWebhooks -}}
{{- if $webhooks.certManager.enabled -}}
{{- if $webhooks.certificateSecret -}}
{{- fail "admissionWebhooks.certManager.enabled and admissionWebhooks.certificateSecret exclude each other. Set one of them." -}}
{{- end -}}
cert-manager
{{- else if $webhooks.certificateSecret -}}
{{- if $webhooks.patch.enabled -}}
{{- fail "admissionWebhooks.certificateSecret needs admissionWebhooks.patch.enabled=false, so that the operator creates no certificate." -}}
{{- else if not $webhooks.caCertificate -}}
{{- fail "admissionWebhooks.caCertificate is missing. Set it to the CA certificate of admissionWebhooks.certificateSecret." -}}
{{- end -}}
user
{{- else if $webhooks.patch.enabled -}}
operator
{{- else -}}
{{- fail "With admissionWebhooks.patch.enabled=false, no certificate is created. Set admissionWebhooks.certificateSecret, or admissionWebhooks.certManager.enabled." -}}
{{- end -}}
{{- end -}}
