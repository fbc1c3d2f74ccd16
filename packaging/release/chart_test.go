package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// chart is the Helm chart, tested by Helm's own library and the types of Kubernetes' API.
const chart = "../helm/ibwarden"

// good are values that may be given, by name.
var good = map[string]string{
	"default": "",
	"manages": "readOnly: false\npolicy: |\n  partitions: []\n",
	"two with etcd": `readOnly: false
policy: "partitions: []"
replicas: 2
etcd: {endpoints: ["https://etcd-0:2379", "https://etcd-1:2379"]}
masterSecret: {existingSecret: fabric}
data: {size: 1Gi, storageClass: fast}
`,
	"device plugin": "devicePlugin: {resource: rdma/hca_shared_devices_a}\nresources: {limits: {memory: 1Gi}}\n",
	"metrics":       "metrics: {enabled: true, serviceMonitor: true}\n",
	"settings":      "settings: {sweep-interval: 20s, trusted-sm: [\"0x0002c90300a1b2c3\"], priority: 14}\n",
}

// bad are values that the schema refuses, with what it says.
var bad = map[string]string{
	"readOnly: false": "policy",
	"{readOnly: false, policy: x, replicas: 2}": "endpoints",
	"replicas: 0":                                        "replicas",
	"settings: {sm-key: \"0x1234\"}":                     "sm-key",
	"settings: {secret-file: /etc/passwd}":               "secret-file",
	"settings: {read-only: false}":                       "read-only",
	"settings: {Shell: x}":                               "Shell",
	"etcd: {endpoints: [\"https://user:pass@etcd\"]}":    "endpoints",
	"masterSecret: {secret: 00112233445566778899aabbcc}": "masterSecret",
	"fabric: sim":                                        "fabric",
	"readonly: false":                                    "readonly",
	"metrics: {serviceMonitor: true}":                    "metrics",
	"data: {hostPath: ../../etc}":                        "hostPath",
}

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// render renders the chart as `helm template fabric --namespace guarded` does.
func render(t *testing.T, text string) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	with, err := util.ToRenderValues(loaded, values(t, text), common.ReleaseOptions{Name: "fabric", Namespace: "guarded", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, with)
}

func TestLint(t *testing.T) {
	for name, text := range good {
		l := lint.RunAll(chart, values(t, text), "guarded")
		for _, m := range l.Messages {
			t.Errorf("%s: %s", name, m)
		}
	}
	broken := t.TempDir()
	if err := os.CopyFS(filepath.Join(broken, "ibwarden"), os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "ibwarden", "templates", "service.yaml"), []byte("{{ .Values.nothing.there }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if l := lint.RunAll(filepath.Join(broken, "ibwarden"), map[string]any{}, "guarded"); len(l.Messages) == 0 {
		t.Error("lint has nothing to say against a broken template")
	}
}

// objects are what was rendered: each read strictly as the type of the API that it names.
type objects struct {
	manager  *appsv1.StatefulSet
	settings *corev1.ConfigMap
	kinds    []string
	text     string
}

func read(t *testing.T, rendered map[string]string) objects {
	t.Helper()
	var o objects
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, doc := range strings.Split(rendered[name], "\n---\n") {
			var kind struct{ Kind string }
			if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			var into any
			switch kind.Kind {
			case "":
				continue
			case "StatefulSet":
				o.manager = &appsv1.StatefulSet{}
				into = o.manager
			case "ConfigMap":
				o.settings = &corev1.ConfigMap{}
				into = o.settings
			case "Service":
				into = &corev1.Service{}
			case "ServiceAccount":
				into = &corev1.ServiceAccount{}
			case "ClusterRoleBinding":
				into = &rbacv1.ClusterRoleBinding{}
			case "ServiceMonitor":
				into = &map[string]any{} // not of Kubernetes' own API
			default:
				t.Fatalf("%s: kind %q", name, kind.Kind)
			}
			if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, doc)
			}
			o.kinds = append(o.kinds, kind.Kind)
			o.text += doc
		}
	}
	return o
}

func TestTemplates(t *testing.T) {
	for name, text := range good {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, text)
			if err != nil {
				t.Fatal(err)
			}
			o := read(t, rendered)
			if o.manager == nil || o.settings == nil || !slices.Contains(o.kinds, "Service") {
				t.Fatalf("kinds %q", o.kinds)
			}
			managing := strings.Contains(text, "readOnly: false")
			var settings map[string]any
			if err := yaml.UnmarshalStrict([]byte(o.settings.Data["ibwarden.yaml"]), &settings); err != nil || settings["read-only"] != !managing {
				t.Errorf("settings %v (%v)", settings, err)
			}
			pod := o.manager.Spec.Template.Spec
			c := pod.Containers[0]
			// Neither the environment nor arguments have what should not be seen in the
			// list of processes or in the description of a pod.
			if len(c.Env) != 0 || len(c.EnvFrom) != 0 || !slices.Equal(c.Args, []string{"run", "--config", "/etc/ibwarden/ibwarden.yaml"}) {
				t.Errorf("arguments %q, environment %v", c.Args, c.Env)
			}
			if *pod.AutomountServiceAccountToken != strings.Contains(text, "metrics") {
				t.Error("the pod has a token that it does not need, or lacks one")
			}
			for _, c := range pod.Containers {
				s := c.SecurityContext
				plain := s.Privileged == nil && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation && slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"})
				if needs := c.Name == "ibwarden" && !strings.Contains(text, "devicePlugin"); plain == needs || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s: %+v", c.Name, s)
				}
			}
			if len(pod.NodeSelector) == 0 || pod.Affinity.PodAntiAffinity == nil {
				t.Error("managers may run on any host, or two on one")
			}
			for _, v := range pod.Volumes {
				if v.Secret != nil && *v.Secret.DefaultMode != 0o400 {
					t.Errorf("volume %s has mode %o", v.Name, *v.Secret.DefaultMode)
				}
			}
		})
	}
}

func TestTwoManagers(t *testing.T) {
	rendered, err := render(t, good["two with etcd"])
	if err != nil {
		t.Fatal(err)
	}
	o := read(t, rendered)
	settings := o.settings.Data["ibwarden.yaml"]
	if *o.manager.Spec.Replicas != 2 || !strings.Contains(settings, `store: "etcd:https://etcd-0:2379,https://etcd-1:2379"`) || !strings.Contains(settings, "secret-file: /run/secrets/ibwarden/secret\n") {
		t.Errorf("%d managers with\n%s", *o.manager.Spec.Replicas, settings)
	}
	mounted := false
	for _, m := range o.manager.Spec.Template.Spec.Containers[0].VolumeMounts {
		mounted = mounted || m.MountPath == "/run/secrets/ibwarden/secret" && m.ReadOnly
	}
	if !mounted || len(o.manager.Spec.VolumeClaimTemplates) != 1 {
		t.Error("the secret is not mounted, or no volume is claimed")
	}
}

func TestRefused(t *testing.T) {
	for text, want := range bad {
		if _, err := render(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %s", text, err, want)
		}
	}
}
