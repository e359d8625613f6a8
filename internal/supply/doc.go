// Package supply is tests of what a program gets with this module: the modules that
// it is made of, and their licences.
package supply
