// Package fake is empty. Only the tests of Helm import it, and go mod tidy looks for it.
package fake
