// Package upgrade ends an upgrade: it raises the layout of the store once every node reads the next
// one.
//
// Until then each node writes the layout that the store has, so that the release before can come
// back at any time. Afterwards it cannot.
package upgrade
