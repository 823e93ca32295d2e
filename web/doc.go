// Package web is the pages that a node serves: docs, demo, console; built files, embedded and
// compressed.
//
// The sources are in src/, one folder for each section, and build.mjs writes dist/. Both are
// committed, so that building Parlor needs Go only; `npm run check:fresh` builds again and
// compares.
//
// # What is decided here
//
//   - A page has no script and no style in its HTML, and no request leaves the host: policy.go has
//     the Content-Security-Policy of every section.
//   - dist/ has the compressed forms of a text only. The few clients without compression get it
//     decompressed.
//   - A file with a hash in its name may be cached for ever. A page is asked for again each time.
package web
