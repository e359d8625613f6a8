// Package knative tests a reconciler that knative generated on a real server. The code of
// the section about knative in docs/migration.md is here, too.
package knative
