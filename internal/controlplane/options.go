package controlplane

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// Options configures [Start]. Only Binary is required.
type Options struct {
	// Binary is the path of the program, which [Build] returns.
	Binary string

	// DataDir is the directory of etcd's data, the certificate, the tokens and
	// the kubeconfig. A server that finds the data of an earlier one keeps its
	// objects. If empty, Start creates a directory next to Binary, and
	// [Server.Stop] removes it.
	DataDir string

	// Port and EtcdPort are the ports on 127.0.0.1. If zero, the server takes free
	// ports.
	Port, EtcdPort int

	// EventTTL is how long the server keeps an Event after its last write. If
	// zero, it is one hour, the default of kube-apiserver.
	EventTTL time.Duration

	// Users can authenticate, like the administrator. They have no permissions
	// until a test creates RBAC objects for them.
	Users []User

	// ExtraArgs are additional flags of the program. The program passes those
	// after an element "--" to kube-apiserver.
	ExtraArgs []string

	// Log receives the server's log. Errors contain the end of the log even if
	// Log is nil.
	Log io.Writer
}

// User is a user that authenticates with a bearer token.
type User struct {
	Name   string   // must not contain a colon
	Token  string   // must not contain a colon
	Groups []string // in addition to system:authenticated
}

// args returns the arguments of the program for data in dir. If dispose is true,
// the program removes dir when its parent exits first.
func (o Options) args(dir string, dispose bool) []string {
	args := []string{"--lifeline", "--data-dir=" + dir}
	if dispose {
		args = append(args, "--remove-orphaned-data")
	}
	if o.Port != 0 {
		args = append(args, "--port="+strconv.Itoa(o.Port))
	}
	if o.EtcdPort != 0 {
		args = append(args, "--etcd-port="+strconv.Itoa(o.EtcdPort))
	}
	if o.EventTTL != 0 {
		args = append(args, "--event-ttl="+o.EventTTL.String())
	}
	for _, u := range o.Users {
		args = append(args, "--user="+u.flag())
	}
	return append(args, o.ExtraArgs...)
}

func (u User) flag() string {
	s := u.Name + ":" + u.Token
	if len(u.Groups) > 0 {
		s += ":" + strings.Join(u.Groups, ",")
	}
	return s
}
