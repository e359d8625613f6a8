package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// config is the parsed command line.
type config struct {
	dataDir            string
	port, etcdPort     int
	etcdEndpoint       string // if empty, the address of etcd
	secondary          bool
	kubeconfig         string // if empty, a file in dataDir
	eventTTL           time.Duration
	users              []user
	verbosity          int
	lifeline           bool
	removeOrphanedData bool
	apiserverArgs      []string // these override other flags of the kube-apiserver
}

// parseFlags parses the command line. For --help it writes the usage to stderr and
// returns [flag.ErrHelp].
func parseFlags(args []string, stderr io.Writer) (config, error) {
	var cfg config
	fs := flag.NewFlagSet("controlplane", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintf(stderr, "Usage: controlplane [flags] [-- kube-apiserver flags]\n\nA real kube-apiserver and etcd in one process, on 127.0.0.1 only.\n\n")
		fs.PrintDefaults()
	}
	fs.StringVar(&cfg.dataDir, "data-dir", "", "`directory` of etcd's data, certificates and tokens")
	fs.IntVar(&cfg.port, "port", 6443, "`port` of the API server")
	fs.IntVar(&cfg.etcdPort, "etcd-port", 2379, "`port` of etcd")
	fs.StringVar(&cfg.etcdEndpoint, "etcd-endpoint", "", "`host:port` at which the API server connects to etcd, for example through a proxy; if empty, 127.0.0.1 and the port of etcd")
	fs.BoolVar(&cfg.secondary, "secondary", false, "with --etcd-endpoint, --kubeconfig, and the --data-dir and users of a server that runs: start another API server of its cluster, and no etcd")
	fs.StringVar(&cfg.kubeconfig, "kubeconfig", "", "`file` to write when the server is ready; if empty, kubeconfig in --data-dir")
	fs.DurationVar(&cfg.eventTTL, "event-ttl", time.Hour, "how long etcd keeps an Event after its last write")
	fs.Func("user", "`name:token[:group,...]` of a user without permissions, except those that RBAC grants; repeatable", func(s string) error {
		u, err := parseUser(s)
		cfg.users = append(cfg.users, u)
		return err
	})
	fs.IntVar(&cfg.verbosity, "v", 0, "log `level` of the kube-apiserver; 0 logs errors only")
	fs.BoolVar(&cfg.lifeline, "lifeline", false, "stop when the standard input ends, so that the server does not outlive the process that started it")
	fs.BoolVar(&cfg.removeOrphanedData, "remove-orphaned-data", false, "with --lifeline: remove --data-dir when the standard input ends")

	if err := fs.Parse(args); err != nil {
		return config{}, fmt.Errorf("controlplane: %w", err)
	}
	// Parse stops at the first argument that is not a flag. The remaining arguments
	// are valid only after a "--".
	cfg.apiserverArgs = fs.Args()
	switch n := len(args) - fs.NArg(); {
	case fs.NArg() > 0 && (n == 0 || args[n-1] != "--"):
		return config{}, fmt.Errorf("controlplane: unexpected argument %q (flags of the kube-apiserver must follow --)", fs.Arg(0))
	case cfg.dataDir == "":
		return config{}, errors.New("controlplane: --data-dir is required")
	case cfg.eventTTL < time.Second:
		return config{}, fmt.Errorf("controlplane: --event-ttl=%v is shorter than 1s, the resolution of etcd", cfg.eventTTL)
	case cfg.secondary && (cfg.etcdEndpoint == "" || cfg.kubeconfig == ""):
		return config{}, errors.New("controlplane: --secondary requires --etcd-endpoint and --kubeconfig")
	}
	return cfg, nil
}

// user is a user that authenticates with a token.
type user struct {
	name, token string
	groups      []string
}

// parseUser parses name:token[:group,...]. A group may contain colons, as in
// system:masters, but a name cannot.
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
