package eventclient

import "context"

type chargeKey struct{}

// WithCharge returns a context for calls of a sink. A call that sends more than one request calls charge
// before each further one, so that these take tokens of a rate limiter, too.
func WithCharge(ctx context.Context, charge func()) context.Context {
	return context.WithValue(ctx, chargeKey{}, charge)
}

// Charge says that a call sends a further request. It does not wait.
func Charge(ctx context.Context) {
	if charge, ok := ctx.Value(chargeKey{}).(func()); ok {
		charge()
	}
}
