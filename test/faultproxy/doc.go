// Package faultproxy stands between a client and a server on the loopback
// interface and does to their connections what a bad network does.
//
//	proxy, err := faultproxy.Listen(ctx, server.Addr())
//	…
//	defer proxy.Close()
//	config.Host = "https://" + proxy.Addr()
//	…
//	proxy.Set(faultproxy.Fault{HoldAnswers: true}) // requests are done, nobody learns of it
//	…
//	proxy.Set(faultproxy.Fault{}) // all is well
//
// It forwards bytes and knows nothing of what they mean, so TLS goes through it
// from end to end.
//
// # Guarantees
//
//   - What arrives, arrives unchanged and in order. What is held is not lost: it
//     goes on its way when the fault is over, as it does on a network that loses
//     packets for a while and sends them again, even if the client has gone by
//     then. So a request can reach the server long after its sender has given it
//     up.
//   - Close returns when no goroutine and no connection is left.
//
// # Limitations
//
//   - Connections that are refused are accepted and reset at once, so that
//     nobody else can take the port. A client sees that as a reset, not as
//     "connection refused".
package faultproxy
