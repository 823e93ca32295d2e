// Package sdk is the browser SDK as a node serves it: built files, and their digests.
package sdk

import "embed"

// Files has the folder dist: v1.js and v1.mjs, which move with every release, the same files under
// the number of their version, which never change, their types, and integrity.json with the digest
// of each numbered file.
//
//go:embed dist/*.js dist/*.mjs dist/v1.d.ts dist/integrity.json
var Files embed.FS
