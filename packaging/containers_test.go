package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const containers = "../examples/containers/"

// documentsOf returns the documents of a YAML file, each decoded into Kubernetes' own type. A field that the
// type does not have, or that is given twice, is an error.
func documentsOf(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]any{}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var kind struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatal(err)
		}
		into := map[string]any{
			"v1 Service": &corev1.Service{}, "apps/v1 StatefulSet": &appsv1.StatefulSet{}, "apps/v1 DaemonSet": &appsv1.DaemonSet{},
			"policy/v1 PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		}[kind.APIVersion+" "+kind.Kind]
		if into == nil {
			t.Fatalf("%s: a test must know the type of %+v", path, kind)
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Errorf("%s: %s: %v", path, kind.Kind, err)
		}
		found[kind.Kind] = into
	}
	return found
}

func TestTheManifestsAreKubernetes(t *testing.T) {
	sidecar := documentsOf(t, containers+"kubernetes.yaml")
	set, service := sidecar["StatefulSet"].(*appsv1.StatefulSet), sidecar["Service"].(*corev1.Service)
	if set.Spec.ServiceName != service.Name || !service.Spec.PublishNotReadyAddresses {
		t.Error("the pods would have no names, or not before they are ready")
	}
	labels := set.Spec.Template.Labels
	for _, selector := range []map[string]string{service.Spec.Selector, set.Spec.Selector.MatchLabels, sidecar["PodDisruptionBudget"].(*policyv1.PodDisruptionBudget).Spec.Selector.MatchLabels} {
		if !maps.Equal(selector, labels) {
			t.Errorf("%v does not select the pods: %v", selector, labels)
		}
	}
	pod := set.Spec.Template.Spec
	if n := len(strings.Split(check(t, pod, map[string]string{"metadata.name": "payments-0", "status.podIP": "127.0.0.1"})["voters"], ",")); n != int(*set.Spec.Replicas) {
		t.Errorf("%d pods for %d voters", *set.Spec.Replicas, n)
	}
	for _, v := range append(pod.Volumes, corev1.Volume{Name: set.Spec.VolumeClaimTemplates[0].Name}) {
		if !slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name }) {
			t.Errorf("volume %s is not mounted", v.Name)
		}
		if v.Name == "record" && (v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory) {
			t.Error("the record needs memory")
		}
	}
	apart(t, pod)

	hosts := documentsOf(t, containers+"kubernetes-hosts.yaml")["DaemonSet"].(*appsv1.DaemonSet)
	if !maps.Equal(hosts.Spec.Selector.MatchLabels, hosts.Spec.Template.Labels) || !hosts.Spec.Template.Spec.HostNetwork {
		t.Error("not on the hosts' network, or not its own pods")
	}
	check(t, hosts.Spec.Template.Spec, map[string]string{"spec.nodeName": "node-1", "status.hostIP": "127.0.0.1"})
	for _, v := range hosts.Spec.Template.Spec.Volumes {
		if v.HostPath != nil && !strings.Contains(v.HostPath.Path, "/doyen") {
			t.Errorf("the agent has %s of the host", v.HostPath.Path)
		}
	}
}

// apart checks that the program of a pod is not an administrator. It has another user than the agent, in the
// agent's group. It mounts only the socket's volume, and there only a folder that others can't write to.
func apart(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	folders, agent, program := pod.InitContainers[0], pod.Containers[0], pod.Containers[1]
	for _, c := range []corev1.Container{folders, agent, program} {
		s := c.SecurityContext
		if s == nil || s.RunAsUser == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Fatalf("%s: %+v", c.Name, s)
		}
	}
	own, other := *agent.SecurityContext.RunAsUser, *program.SecurityContext.RunAsUser
	if own != nonroot || *folders.SecurityContext.RunAsUser != own || other == own || other == 0 || *pod.SecurityContext.FSGroup != nonroot {
		t.Errorf("the agent's user is %d, the program's %d, and their group %d", own, other, *pod.SecurityContext.FSGroup)
	}
	for _, m := range program.VolumeMounts {
		if m.Name != "run" || m.SubPath == "" {
			t.Errorf("the program mounts %+v", m)
		}
	}
	for _, m := range agent.VolumeMounts {
		made := m.Name != "key"
		if made != slices.ContainsFunc(folders.VolumeMounts, func(f corev1.VolumeMount) bool {
			return f.Name == m.Name && strings.Contains(folders.Command[2], strings.TrimPrefix(f.MountPath, "/pod/")+"/"+m.SubPath)
		}) {
			t.Errorf("the agent mounts %+v, and the first container runs %q", m, folders.Command)
		}
	}
}

// check makes the agent check the environment of the pod's first container, with the values that Kubernetes
// fills in, and with this machine's files. It returns the settings.
func check(t *testing.T, pod corev1.PodSpec, filled map[string]string) map[string]string {
	t.Helper()
	agent := pod.Containers[0]
	environment := map[string]string{}
	for _, v := range agent.Env {
		environment[v.Name] = v.Value
		if v.ValueFrom != nil {
			environment[v.Name] = filled[v.ValueFrom.FieldRef.FieldPath]
		}
	}
	for _, probe := range []*corev1.Probe{agent.LivenessProbe, agent.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || !slices.Contains([]string{"/livez", "/readyz"}, probe.HTTPGet.Path) {
			t.Errorf("%s: probe %+v", agent.Name, probe)
		}
	}
	return accepted(t, environment)
}

// accepted makes the release's agent check an environment, and returns the settings.
func accepted(t *testing.T, environment map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	program := program(t)
	if _, ok := environment["DOYEN_KEY_FILE"]; ok {
		environment["DOYEN_KEY_FILE"] = dir + "/key"
		run(t, program, "keygen", "--out", dir+"/key")
	}
	environment["DOYEN_DATA_DIR"] = dir + "/data"
	cmd := exec.Command(program, "agent", "--check-config", "--all")
	cmd.Env = []string{}
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		settings[key] = strings.Trim(value, `"[]`)
	}
	for name := range environment {
		if setting := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "DOYEN_"), "_", "-")); settings[setting] == "" {
			t.Errorf("%s sets nothing", name)
		}
	}
	return settings
}

// program returns the path of the deb's program.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	content, err := exec.Command("tar", "-xzOf", file(t, ".tar.gz"), "--wildcards", "*/bin/doyen").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "doyen"), content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "doyen")
}

func composed(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{containers + "compose.yaml"}, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

func TestTheComposeFileIsCompose(t *testing.T) {
	project, agents := composed(t), 0
	for name, s := range project.Services {
		if s.Entrypoint != nil {
			if s.User != "10001:10001" || !slices.Equal(s.GroupAdd, []string{"65532"}) {
				t.Errorf("%s runs as %s, with %v", name, s.User, s.GroupAdd)
			}
			continue // the line belongs to a program
		}
		agents++
		environment := map[string]string{"DOYEN_NAME": s.Hostname}
		for k, v := range s.Environment {
			environment[k] = *v
		}
		voters := accepted(t, environment)["voters"]
		if _, ok := project.Volumes["data-"+name]; !ok || s.Hostname != name || !strings.Contains(voters, name) {
			t.Errorf("%s: hostname %s, voters %s", name, s.Hostname, voters)
		}
		if beside := project.Services["program-"+name]; beside.Pid != "service:"+name || beside.Volumes[0].Source != "run-"+name {
			t.Errorf("the program beside %s is not beside it: %s %v", name, beside.Pid, beside.Volumes)
		}
	}
	if agents != 3 {
		t.Errorf("%d agents", agents)
	}
}

// The images in the documents have the version of the release.
func TestTheImagesHaveTheVersion(t *testing.T) {
	for _, name := range []string{containers + "compose.yaml", containers + "kubernetes.yaml", containers + "kubernetes-hosts.yaml", "../docs/containers.md", "../docs/operations.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range bytes.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n`/", r) }) {
			for _, before := range []string{"doyen:", "doyen_", "doyen-"} {
				rest, ok := bytes.CutPrefix(word, []byte(before))
				if ok && len(rest) > 3 && rest[0] >= '0' && rest[0] <= '9' && bytes.Contains(rest[:3], []byte(".")) && !bytes.HasPrefix(rest, []byte(made.version)) {
					t.Errorf("%s: %s, and not %s", name, word, made.version)
				}
			}
		}
	}
}
