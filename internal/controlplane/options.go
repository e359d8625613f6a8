package controlplane

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// Options says how a server is started. The zero value of every field but
// Binary is useful.
type Options struct {
	// Binary is the program, as returned by Build. It is required.
	Binary string

	// DataDir keeps etcd's data, the certificate, the tokens and the
	// kubeconfig. A server on the directory of an earlier one continues it, on
	// the same ports. If empty, a new directory beside Binary is used, which
	// Stop removes.
	DataDir string

	// Port and EtcdPort are the ports on 127.0.0.1. If zero, those that DataDir
	// was served on before, or else free ones.
	Port, EtcdPort int

	// EventTTL is how long the server keeps an Event after its last write. If
	// zero, one hour, as kube-apiserver does.
	EventTTL time.Duration

	// Users may authenticate beside the administrator. What they may do is up
	// to the RBAC objects that a test creates.
	Users []User

	// ExtraArgs are further flags of the program. Those after an element "--"
	// go to the kube-apiserver.
	ExtraArgs []string

	// Log receives what the server logs. If nil, that is only kept for the
	// error message of a start that fails.
	Log io.Writer
}

// User is somebody who authenticates with a bearer token.
type User struct {
	Name   string   // without a colon
	Token  string   // without a colon
	Groups []string // beside system:authenticated
}

// args returns the program's arguments for a start on dir, which is removed by
// the program if it is left alone with it and dispose is true.
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
