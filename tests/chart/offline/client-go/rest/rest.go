// Package rest has the settings of a client.
package rest

// Config names no server: these packages have none.
type Config struct{}
