// Package chaos proves that no unit of money is made or lost: every order of calls of the store,
// nodes and servers that die at any instant, storms, failovers. Its tests have a short form, which
// `make test` runs, and a long one, `make chaos`, whose figures docs/proof.md carries.
package chaos
