// Package events has the name of another package.
package events

// Created is a reason.
const Created = "Created"
