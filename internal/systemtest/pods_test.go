//go:build system

package systemtest

import (
	"errors"
	"fmt"
	"strings"
)

// podSpec is a release with an application of a pod in a network of its own,
// whose container has a check.
func podSpec(image, more string) string {
	return fmt.Sprintf(`onDevice: {retries: 0}
applications:
  web:
    quadlet:
      edge.pod: {content: "[Pod]\nNetwork=edge.network\nPublishPort=8080:8080\n[Install]\nWantedBy=multi-user.target\n"}
      edge.network: {content: "[Network]\n"}
      data.volume: {content: "[Volume]\n"}
      web.container:
        content: |
          [Container]
          Image=%s
          ContainerName=web
          Pod=edge.pod
          Volume=data.volume:/data
          Volume=/scratch
          HealthCmd=["/app", "check"]
          HealthInterval=1s
          HealthRetries=2
          %s
    health: {http: {url: "http://127.0.0.1:8080/"}, timeout: 8s, stableFor: 1s}
`, image, more)
}

// kubeSpec is the same as a document of Kubernetes.
func kubeSpec(image, more string) string {
	return fmt.Sprintf(`onDevice: {retries: 0}
files:
  /etc/edge/pod.yaml:
    content: |
      apiVersion: v1
      kind: Pod
      metadata: {name: edge}
      spec:
        containers:
          - name: web
            image: %s
            livenessProbe: {exec: {command: [/app, check]}, periodSeconds: 1}
            volumeMounts: [{name: scratch, mountPath: /scratch}]
            %s
        volumes: [{name: scratch, emptyDir: {}}]
applications:
  web:
    quadlet:
      web.kube: {content: "[Kube]\nYaml=/etc/edge/pod.yaml\nNetwork=edge.network\nPublishPort=8080:8080\n[Install]\nWantedBy=multi-user.target\n"}
      edge.network: {content: "[Network]\n"}
    health: {http: {url: "http://127.0.0.1:8080/"}, timeout: 8s, stableFor: 1s}
`, image, more)
}

// pods has the application as a pod of quadlets, and then as one of a document:
// updated, updated to what is not well, and back. B80: nothing piles up by it.
func (b *box) pods(reg *registry) {
	b.f.Helper()
	image := reg.addr + "/web:"
	in := func(pod string, containers int) error {
		return errors.Join(b.inPods(fmt.Sprintf("%s %d", pod, containers)),
			b.prints("2", "sh", "-c", "podman volume ls --quiet | wc -l"), // one has a name
			b.prints("podman systemd-edge", "podman", "network", "ls", "--format", "{{.Name}}"))
	}
	b.next("v6.0.0", podSpec(image+"1", ""))
	b.f.is("gw-1", "Current", "v6.0.0")
	b.must("as a pod", b.answers("one"), in("systemd-edge", 2))
	subnet := func(want string) error {
		return b.prints(want, "podman", "network", "inspect", "--format", "{{range .Subnets}}{{.Subnet}}{{end}}", "systemd-edge")
	}
	b.next("v6.1.0", strings.Replace(podSpec(image+"2", ""), `"[Network]\n"`, `"[Network]\nSubnet=10.77.1.0/24\n"`, 1))
	b.f.is("gw-1", "Current", "v6.1.0")
	b.must("another image in the pod, and another network", b.answers("two"), in("systemd-edge", 2), subnet("10.77.1.0/24"))
	b.next("v6.2.0", podSpec(image+"3", "Environment=MODE=sick"))
	b.f.is("gw-1", "Failed", "v6.1.0")
	b.must("after a container that its check does not like", b.answers("two"), in("systemd-edge", 2), subnet("10.77.1.0/24"))
	if log := b.log(); !strings.Contains(log, "the container web is unhealthy") {
		b.f.Errorf("nothing is said of the check:\n%s", log)
	}

	b.next("v7.0.0", kubeSpec(image+"1", ""))
	b.f.is("gw-1", "Current", "v7.0.0")
	b.must("as a document", b.answers("one"), in("edge", 2))
	b.next("v7.1.0", kubeSpec(image+"2", ""))
	b.f.is("gw-1", "Current", "v7.1.0")
	b.must("another image in the document", b.answers("two"), in("edge", 2))
	// podman starts it again and again, of which systemd sees nothing.
	b.next("v7.2.0", kubeSpec(image+"3", "env: [{name: MODE, value: end}]"))
	b.f.is("gw-1", "Failed", "v7.1.0")
	b.must("after a pod that ends", b.answers("two"), in("edge", 2))
	if log := b.log(); !strings.Contains(log, "the container edge-web was restarted") {
		b.f.Errorf("nothing is said of the restarts:\n%s", log)
	}
}
