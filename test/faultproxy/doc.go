// Package faultproxy provides a TCP proxy that simulates network faults between a
// client and a server on the loopback interface.
//
//	proxy, err := faultproxy.Listen(ctx, server.Addr())
//	…
//	defer proxy.Close()
//	config.Host = "https://" + proxy.Addr()
//	…
//	proxy.Set(faultproxy.Fault{HoldAnswers: true}) // the server executes requests, the client gets no response
//	…
//	proxy.Set(faultproxy.Fault{}) // no fault
//
// The proxy forwards bytes without interpreting them, so it works with TLS.
//
// The proxy never reorders or changes data. When a fault ends, it forwards the data
// that it has held, as a network does that retransmits lost packets, even if the
// client has disconnected. So a request can reach the server long after the client
// has given up.
//
// A refused connection is reset, because the proxy keeps its port. The client does
// not get the error "connection refused".
package faultproxy
