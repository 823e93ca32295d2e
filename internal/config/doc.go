// Package config holds every setting once: the annotated struct Settings is the source of the
// flags, the environment variables, the keys of the YAML file, the defaults and the reference in
// docs/settings.md.
//
// A flag wins over the environment, the environment over the file, the file over the default. Whatever is wrong
// is told at once, each fault with its fix, and nothing starts. A secret is never printed.
//
// The package reads no file, environment or clock by itself: it is given its sources.
package config
