// Package docs is the code of the pages in docs, and of the README, as tests: what is
// shown there is compiled, and does what is said.
package docs
