package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// config is the command line, parsed.
type config struct {
	// dataDir is empty for a temporary directory that is removed at the end.
	dataDir string
	// port and etcdPort are 0 for the ports that dataDir was served on before,
	// or free ones when there was no before.
	port, etcdPort int
	// etcdEndpoint is empty for the address that etcd itself listens on.
	etcdEndpoint string
	// kubeconfig is empty for a file in dataDir.
	kubeconfig string
	eventTTL   time.Duration
	users      []user

	enableAdmission    string
	disableAdmission   string
	admissionConfig    string
	verbosity          int
	lifeline           bool
	removeOrphanedData bool
	// apiserverArgs go to the kube-apiserver after the flags that are made here,
	// so that they win over them.
	apiserverArgs []string
}

// parseFlags reads the command line. It returns flag.ErrHelp after it has
// written the usage that was asked for to stderr.
func parseFlags(args []string, stderr io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "Usage: controlplane [flags] [-- kube-apiserver flags]\n\nA real kube-apiserver and etcd in one process, on 127.0.0.1 only.\n\n")
		fs.PrintDefaults()
	}
	fs.StringVar(&cfg.dataDir, "data-dir", "", "`directory` of etcd's data, certificates and tokens; empty: a temporary one that is removed at the end")
	fs.IntVar(&cfg.port, "port", 0, "`port` of the API server; 0: the one that --data-dir had before, else a free one")
	fs.IntVar(&cfg.etcdPort, "etcd-port", 0, "`port` of etcd; 0: the one that --data-dir had before, else a free one")
	fs.StringVar(&cfg.etcdEndpoint, "etcd-endpoint", "", "`host:port` at which the API server looks for etcd, such as that of a proxy in front of it; empty: 127.0.0.1 and etcd's port")
	fs.StringVar(&cfg.kubeconfig, "kubeconfig", "", "`file` that is written when the server is ready; empty: kubeconfig in --data-dir")
	fs.DurationVar(&cfg.eventTTL, "event-ttl", time.Hour, "how long etcd keeps an Event after its last write")
	fs.Func("user", "`name:token[:group,...]` of a further user, without permissions until RBAC grants some; repeatable", func(s string) error {
		u, err := parseUser(s)
		cfg.users = append(cfg.users, u)
		return err
	})
	fs.StringVar(&cfg.enableAdmission, "enable-admission-plugins", "", "comma-separated admission `plugins` to enable beside the default ones")
	fs.StringVar(&cfg.disableAdmission, "disable-admission-plugins", "ServiceAccount", "comma-separated admission `plugins` to disable; ServiceAccount would refuse every Pod, because nothing here creates service accounts")
	fs.StringVar(&cfg.admissionConfig, "admission-control-config-file", "", "`file` with the configuration of the admission plugins")
	fs.IntVar(&cfg.verbosity, "v", 0, "log `level`; 0: errors only, higher: as the kube-apiserver's")
	fs.BoolVar(&cfg.lifeline, "lifeline", false, "stop when the standard input ends: the server then never outlives the process that started it")
	fs.BoolVar(&cfg.removeOrphanedData, "remove-orphaned-data", false, "with --lifeline: remove --data-dir when the standard input ends")

	if err := fs.Parse(args); err != nil {
		return config{}, fmt.Errorf("controlplane: %w", err)
	}
	// The flag package stops at the first argument that is no flag, so a "--"
	// was there exactly if it stands right before what is left.
	cfg.apiserverArgs = fs.Args()
	if n := len(args) - fs.NArg(); fs.NArg() > 0 && (n == 0 || args[n-1] != "--") {
		return config{}, fmt.Errorf("controlplane: unexpected argument %q (flags for the kube-apiserver go after --)", fs.Arg(0))
	}
	return cfg, cfg.validate()
}

func (c config) validate() error {
	for _, p := range []struct {
		flag string
		port int
	}{{"port", c.port}, {"etcd-port", c.etcdPort}} {
		if p.port < 0 || p.port > 65535 {
			return fmt.Errorf("controlplane: --%s=%d is not between 0 and 65535", p.flag, p.port)
		}
	}
	if c.port != 0 && c.port == c.etcdPort {
		return fmt.Errorf("controlplane: --port and --etcd-port are both %d", c.port)
	}
	if c.etcdEndpoint != "" {
		if _, _, err := net.SplitHostPort(c.etcdEndpoint); err != nil {
			return fmt.Errorf("controlplane: --etcd-endpoint=%s is not host:port: %w", c.etcdEndpoint, err)
		}
	}
	if c.eventTTL < time.Second {
		return fmt.Errorf("controlplane: --event-ttl=%v is shorter than the second that etcd counts in", c.eventTTL)
	}
	if c.removeOrphanedData && !c.lifeline {
		return fmt.Errorf("controlplane: --remove-orphaned-data does nothing without --lifeline")
	}
	seen := map[string]bool{adminUser: true}
	for _, u := range c.users {
		if seen[u.name] {
			return fmt.Errorf("controlplane: --user %q is given twice, or is the name of the administrator", u.name)
		}
		seen[u.name] = true
	}
	return nil
}

// user is somebody who may authenticate with a token.
type user struct {
	name, token string
	groups      []string
}

// parseUser reads name:token[:group,...]. A group may contain colons
// (system:masters); a name may not, and is impersonated by the administrator
// where a test needs one that does.
func parseUser(s string) (user, error) {
	name, rest, _ := strings.Cut(s, ":")
	token, groups, _ := strings.Cut(rest, ":")
	if name == "" || token == "" {
		return user{}, fmt.Errorf("%q is not name:token[:group,...]", s)
	}
	u := user{name: name, token: token}
	if groups != "" {
		u.groups = strings.Split(groups, ",")
	}
	return u, nil
}
