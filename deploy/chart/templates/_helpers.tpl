{{/* Labels of every object, in addition to app.kubernetes.io/name. */}}
{{- define "ironfence.moreLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with include "ironfence.ownLabels" .Values.commonLabels | fromYaml }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ironfence.labels" -}}
app.kubernetes.io/name: ironfence
{{ include "ironfence.moreLabels" . }}
{{- end -}}

{{/* Labels of an object. Its own labels take precedence over commonLabels. Takes a dict: root and labels. */}}
{{- define "ironfence.labelsWith" -}}
{{- mergeOverwrite (include "ironfence.labels" .root | fromYaml) (include "ironfence.ownLabels" .labels | fromYaml) | toYaml -}}
{{- end -}}

{{/* Labels without those that the chart sets on every object. */}}
{{- define "ironfence.ownLabels" -}}
{{- omit (. | default dict) "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/managed-by" "app.kubernetes.io/version" "helm.sh/chart" | toYaml -}}
{{- end -}}

{{/* The labels by which all selectors find the agents: the same as in deploy/kustomize. */}}
{{- define "ironfence.selector" -}}
app.kubernetes.io/name: ironfence
{{- end -}}

{{- define "ironfence.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{/*
A file of this chart, with the namespaces of the release and its labels. Takes a dict: root, name, labels for more labels, and keep for
objects that stay when the release is uninstalled.
*/}}
{{- define "ironfence.file" -}}
{{- $text := .root.Files.Get (printf "files/%s" .name) | required (printf "files/%s is not in the chart" .name) -}}
{{- $text = $text | replace "namespace: ironfence-system\n" (printf "namespace: %q\n" .root.Release.Namespace) -}}
{{- $text = $text | replace "system:serviceaccount:ironfence-system:" (printf "system:serviceaccount:%s:" .root.Release.Namespace) -}}
{{- $text = $text | replace "\"ironfence-system\"" (.root.Release.Namespace | quote) | replace "'ironfence-system'" (.root.Release.Namespace | squote) -}}
{{- $text = $text | replace ": medik8s-leases\n" (printf ": %q\n" .root.Values.leaseNamespace.name) -}}
{{- $more := include "ironfence.moreLabels" .root | fromYaml -}}
{{- $more = mergeOverwrite $more (include "ironfence.ownLabels" .labels | fromYaml) | toYaml | indent 4 -}}
{{- range list "ironfence" "ironfence-check" -}}
{{- $name := printf "\n    app.kubernetes.io/name: %s\n" . -}}
{{- $text = $text | replace $name (printf "%s%s\n" $name $more) -}}
{{- end -}}
{{- if .keep -}}
{{- $text = $text | replace "\nmetadata:\n" "\nmetadata:\n  annotations:\n    helm.sh/resource-policy: keep\n" -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* The files of the families whose permissions the values request, as a JSON list. */}}
{{- define "ironfence.families" -}}
{{- $needed := dict
  "node-health-check" (list)
  "machine-health-check" (list "cluster-api")
  "okd-machine-health-check" (list "okd" "okd-machine-health-check")
  "metal3-remediation" (list "cluster-api" "metal3-remediation")
  "okd-machine" (list "okd" "okd-machine")
  "bare-metal-host" (list "bare-metal-host") -}}
{{- $files := list -}}
{{- range .Values.families -}}{{- $files = concat $files (get $needed .) -}}{{- end -}}
{{- if .Values.okd -}}{{- $files = append $files "okd" -}}{{- end -}}
{{- if .Values.reprovision -}}{{- $files = append $files "reprovision" -}}{{- end -}}
{{- $files | uniq | sortAlpha | toJson -}}
{{- end -}}

{{- define "ironfence.args" -}}
{{- $agent := .Values.agent -}}
- run
- --components={{ join "," $agent.components }}
- --families={{ join "," .Values.families }}
- --log-level={{ $agent.logLevel }}
{{- if .Values.observe }}
- --observe=true
{{- end }}
{{- range $name, $value := dict "max-hosts" $agent.maxHosts "max-hosts-per-cluster" $agent.maxHostsPerCluster "max-hosts-per-zone" $agent.maxHostsPerZone }}
{{- if not (kindIs "invalid" $value) }}
- --{{ $name }}={{ int $value }}
{{- end }}
{{- end }}
{{- range $name, $value := dict "zone-label" $agent.zoneLabel "external-etcd" (join "," $agent.externalEtcd) "own-cluster" $agent.ownCluster "otlp-endpoint" $agent.otlpEndpoint }}
{{- with $value }}
- {{ printf "--%s=%s" $name . | quote }}
{{- end }}
{{- end }}
{{- if ne .Values.leaseNamespace.name "medik8s-leases" }}
- --node-lease-namespace={{ .Values.leaseNamespace.name }}
{{- end }}
{{- if not .Values.metrics.enabled }}
- --metrics-bind-address=0
{{- else if .Values.metrics.secure.enabled }}
- --metrics-secure=true
{{- end }}
{{- if .Values.statusPage.enabled }}
- --status-bind-address=:8443
{{- end }}
{{- if .Values.kdump.enabled }}
- --kdump-bind-address=:7410
{{- end }}
{{- range $agent.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Peers of a NetworkPolicy for a list of networks. If the list is empty, all addresses except link-local ones, at which clouds serve credentials. */}}
{{- define "ironfence.networks" -}}
{{- range (. | default (list "0.0.0.0/0" "::/0")) }}
- ipBlock:
    cidr: {{ . | quote }}
    {{- if eq . "0.0.0.0/0" }}
    except: [169.254.0.0/16]
    {{- else if eq . "::/0" }}
    except: ["fe80::/10", "fd00:ec2::254/128", "fd00:c1::a9fe:a9fe/128"]
    {{- end }}
{{- end }}
{{- end -}}

{{/* Egress rules of the agent and of its check: DNS and API servers. */}}
{{- define "ironfence.egress" -}}
# DNS.
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
# API servers.
- to: {{- include "ironfence.networks" .Values.networkPolicy.apiServers.networks | nindent 4 }}
  ports:
    {{- range .Values.networkPolicy.apiServers.ports }}
    - port: {{ int . }}
      protocol: TCP
    {{- end }}
{{- end -}}

{{/* A binding to subjects of the values. Takes a dict: root, kind, name, role, subjects. */}}
{{- define "ironfence.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- if eq .kind "Role" }}
  namespace: {{ .root.Release.Namespace | quote }}
  {{- end }}
  labels: {{- include "ironfence.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .role }}
subjects: {{- toYaml .subjects | nindent 2 }}
{{- end -}}

{{/* Fails if values contradict each other. */}}
{{- define "ironfence.contradictions" -}}
{{- $values := .Values -}}
{{- $families := include "ironfence.families" . | fromJsonArray -}}
{{- if has .Release.Namespace (list "kube-system" "kube-node-lease" $values.leaseNamespace.name) -}}
{{- fail (printf "namespace %s has a Role of this name for the Leases in it already: install the chart into a namespace of its own" .Release.Namespace) -}}
{{- end -}}
{{- if has $values.leaseNamespace.name (list "kube-system" "kube-node-lease") -}}
{{- fail (printf "leaseNamespace.name is %s, which has a Role of this name for other Leases: name another namespace" $values.leaseNamespace.name) -}}
{{- end -}}
{{- if and $values.observe .Release.IsUpgrade (.Capabilities.APIVersions.Has "ironfence.io/v1alpha1/BareMetalRemediation") -}}
{{- range (lookup "ironfence.io/v1alpha1" "BareMetalRemediation" "" "").items | default list -}}
{{- if has "ironfence.io/remediation" (.metadata.finalizers | default list) -}}
{{- fail (printf "observe would leave BareMetalRemediation %s/%s unfinished, and its host perhaps off: wait until it is gone, then upgrade again" .metadata.namespace .metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Release.IsUpgrade (not $values.crds.install) -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $metadata := (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" ($.Files.Get $path | fromYaml).metadata.name).metadata | default dict -}}
{{- $annotations := $metadata.annotations | default dict -}}
{{- if and (eq (get $annotations "meta.helm.sh/release-name") $.Release.Name) (ne (get $annotations "helm.sh/resource-policy") "keep") -}}
{{- fail (printf "crds.install is false: Helm would delete %s with all of its objects. Upgrade with crds.keep=true and crds.install=true first" $metadata.name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $values.agent.extraArgs }}
{{- if hasPrefix "--lease-name" . -}}
{{- fail "agent.extraArgs has --lease-name, but the Role of the chart allows no Lease but `ironfence`: remove the option" -}}
{{- end -}}
{{- end -}}
{{- $options := list -}}
{{- range include "ironfence.args" . | fromYamlArray -}}
{{- $option := splitList "=" . | first -}}
{{- if has $option $options -}}
{{- fail (printf "agent.extraArgs has %s, which another value sets already, and the agent refuses an option that is given twice: change that value" $option) -}}
{{- end -}}
{{- $options = append $options $option -}}
{{- end -}}
{{- if and $values.bareMetalHostNamespaces (not (has "bare-metal-host" $families)) -}}
{{- fail "bareMetalHostNamespaces needs the family bare-metal-host: add it to families" -}}
{{- end -}}
{{- if and $values.workloadClusterNamespaces (not (has "cluster-api" $families)) -}}
{{- fail "workloadClusterNamespaces needs a family of Cluster API: add machine-health-check or metal3-remediation to families" -}}
{{- end -}}
{{- if and $values.statusPage.enabled (not $values.statusPage.existingSecret) -}}
{{- fail "statusPage.enabled needs statusPage.existingSecret, a Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and $values.metrics.secure.enabled (not $values.metrics.secure.existingSecret) -}}
{{- fail "metrics.secure.enabled needs metrics.secure.existingSecret, a Secret with tls.crt and tls.key" -}}
{{- end -}}
{{- if and $values.metrics.podMonitor.enabled $values.metrics.serviceMonitor.enabled -}}
{{- fail "metrics.podMonitor and metrics.serviceMonitor would scrape every agent twice: enable one of them" -}}
{{- end -}}
{{- if and (not $values.metrics.enabled) (or $values.metrics.podMonitor.enabled $values.metrics.serviceMonitor.enabled $values.metrics.secure.enabled) -}}
{{- fail "metrics.enabled is false: a monitor or secure metrics need it" -}}
{{- end -}}
{{- if and (not (has "remediator" $values.agent.components)) (not (or (has "node-health-check" $values.families) (has "machine-health-check" $values.families) (has "okd-machine-health-check" $values.families))) -}}
{{- fail "the detector alone has nothing to do: add a family of health checks to families, or remediator to agent.components" -}}
{{- end -}}
{{- if and $values.podDisruptionBudget.enabled (gt (int $values.replicas) 1) (ge (int $values.podDisruptionBudget.minAvailable) (int $values.replicas)) -}}
{{- fail "podDisruptionBudget.minAvailable must be less than replicas: no node with an agent could be drained" -}}
{{- end -}}
{{- end -}}
