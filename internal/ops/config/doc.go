// Package config holds every setting once: the tags of the struct Settings are the source of the
// flags, the environment variables, the keys of the YAML file, the defaults and docs/settings.md.
//
// A flag wins over the environment, the environment over the file, the file over the default. Load
// returns everything that is wrong at once, each error with its correction. A secret is never
// printed.
//
// The package reads no file, environment or clock by itself: its caller passes the sources.
package config
