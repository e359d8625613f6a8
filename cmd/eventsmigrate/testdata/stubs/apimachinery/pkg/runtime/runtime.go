// Package runtime stands for that of apimachinery.
package runtime

// Object is an object.
type Object interface{}
