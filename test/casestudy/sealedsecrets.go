package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/internal/controlplane"
)

const (
	// unsealer is the name of the service account of sealed-secrets, and of its role.
	unsealer = "sealed-secrets-controller"
	// undecryptable is a SealedSecret for another cluster.
	undecryptable = `
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {namespace: shop, name: bad}
spec: {encryptedData: {password: AgBghj7K}}
`
	// foreignSecret has the name that the SealedSecret "taken" needs.
	foreignSecret = `
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: taken}
`
)

// unsealerRules are the permissions of controller.jsonnet: those of the ClusterRole, and
// those of the Role for the keys.
var unsealerRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"bitnami.com"}, Resources: []string{"sealedsecrets"}, Verbs: []string{"get", "list", "watch"}},
	{APIGroups: []string{"bitnami.com"}, Resources: []string{"sealedsecrets/status"}, Verbs: []string{"update"}},
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "update", "delete", "watch"}},
	{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
}

// finishSealedSecrets shuts down the broadcaster before the program exits.
var finishSealedSecrets = []edit{
	{"pkg/controller/controller.go", "// NewController returns", "// shutdownEvents writes the last events.\nvar shutdownEvents = func() {}\n\n"},
	{"pkg/controller/controller.go", "	ssInformer, err := watchSealedSecrets(", "	shutdownEvents = eventBroadcaster.Shutdown\n"},
	{"pkg/controller/main.go", "	if err := server.Shutdown(", "	shutdownEvents()\n"},
}

// tellSealedSecrets runs the story of sealed-secrets.
func tellSealedSecrets(ctx context.Context, c *cluster) error {
	address, err := c.startSealedSecrets(ctx)
	if err != nil {
		return err
	}
	sealedSecrets, err := c.resource(schema.GroupVersionKind{Group: "bitnami.com", Version: "v1alpha1", Kind: "SealedSecret"})
	if err != nil {
		return err
	}
	for _, name := range []string{"good", "taken"} {
		if err := c.seal(ctx, address, name); err != nil {
			return err
		}
	}
	names := []string{"good", "taken", "bad"}
	change := func(ctx context.Context) error {
		return touch(ctx, func(i int) error {
			patch := fmt.Appendf(nil, `{"spec":{"template":{"data":{"i":"%d"}}}}`, i)
			_, err := sealedSecrets.Namespace(shop).Patch(ctx, names[i%len(names)], types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	return c.play(ctx, []act{{time.Second, change}}, func(context.Context) error { return nil })
}

// startSealedSecrets starts sealed-secrets, and returns its address.
func (c *cluster) startSealedSecrets(ctx context.Context) (address string, err error) {
	for _, ns := range []string{metav1.NamespaceSystem, shop} {
		if err := c.createNamespace(ctx, ns); err != nil {
			return "", err
		}
	}
	if err := c.createFiles(ctx, "helm/sealed-secrets/crds/bitnami.com_sealedsecrets.yaml"); err != nil {
		return "", err
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: unsealer}, Rules: unsealerRules}
	if _, err := c.clients.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := c.create(ctx, foreignSecret+"---"+undecryptable); err != nil {
		return "", err
	}
	token, err := c.serviceAccount(ctx, metav1.NamespaceSystem, unsealer, unsealer)
	if err != nil {
		return "", err
	}
	if err := rest.LoadTLSFiles(c.config); err != nil {
		return "", err
	}
	files := filepath.Join(c.dir, "serviceaccount")
	if err := os.Mkdir(files, 0o700); err != nil {
		return "", err
	}
	for name, content := range map[string]string{
		"token": token, corev1.ServiceAccountRootCAKey: string(c.config.CAData), corev1.ServiceAccountNamespaceKey: metav1.NamespaceSystem,
	} {
		if err := os.WriteFile(filepath.Join(files, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = controlplane.FreePort(ctx); err != nil {
			return "", err
		}
	}
	host, port, err := net.SplitHostPort(c.server.Addr())
	if err != nil {
		return "", err
	}
	address = "127.0.0.1:" + strconv.Itoa(ports[0])
	// It reads its service account at a fixed path only, as in a container. So give it a
	// file system of its own there.
	cmd := exec.CommandContext(context.Background(), "sh", "-ec", `
		mount -t tmpfs run /var/run
		mkdir -p /var/run/secrets/kubernetes.io
		cp -r "$0" /var/run/secrets/kubernetes.io/serviceaccount
		exec "$@"`,
		files, c.binary, "--listen-addr="+address, "--listen-metrics-addr=127.0.0.1:"+strconv.Itoa(ports[1]))
	cmd.Env = append(os.Environ(), "KUBERNETES_SERVICE_HOST="+host, "KUBERNETES_SERVICE_PORT="+port)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER, Unshareflags: syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	return address, c.start(cmd)
}

// seal creates a SealedSecret. It waits until sealed-secrets has a key.
func (c *cluster) seal(ctx context.Context, address, name string) error {
	secret, err := json.Marshal(&corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name},
		StringData: map[string]string{"password": "secret"},
	})
	if err != nil {
		return err
	}
	var sealed, problem bytes.Buffer
	err = c.eventually(ctx, "kubeseal", func(ctx context.Context) (bool, error) {
		sealed.Reset()
		problem.Reset()
		cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(c.binary), "kubeseal"), "--cert=http://"+address+"/v1/cert.pem")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(secret), &sealed, &problem
		return cmd.Run() == nil, nil // until it listens
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, problem.Bytes())
	}
	return c.create(ctx, sealed.String())
}
