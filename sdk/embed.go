// Package sdk is the browser SDK as a node serves it: built files, their digests, packages for npm,
// and the templates of new games.
package sdk

import "embed"

// Files has the folder dist: v1.js and v1.mjs, which move with every release, the same files under
// the number of their version, which never change, their types, the packages for npm, and
// integrity.json with the digest of each numbered file and package.
//
//go:embed dist/*.js dist/*.mjs dist/v1.d.ts dist/*.tgz dist/integrity.json
var Files embed.FS

// Templates has the folder create/templates, whose files are the games that create-parlor and
// `parlor init` write, and create/servers: the servers of those games, by what they are written in,
// and in its folder game what replaces files of a game that has a server.
//
//go:embed all:create/templates all:create/servers
var Templates embed.FS

// GoLibrary has the folder go, without tests: the library for a game's server in Go, which `parlor
// init` writes beside a server that uses it.
//
//go:embed go/connection.go go/doc.go go/lanes.go go/positions.go go/requests.go go/server.go
//go:embed go/types.go go/verbs.go go/webhook.go
var GoLibrary embed.FS
