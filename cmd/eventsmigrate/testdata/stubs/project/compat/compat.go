// Package compat is one that the results of the tool can import.
package compat
