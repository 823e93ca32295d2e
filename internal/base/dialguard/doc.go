// Package dialguard keeps this node from connecting to hosts that only it can reach, when somebody
// else names the address.
//
// It looks at the address after its name was resolved, right before the connection is made. So what
// a name resolves to at another moment does not matter.
package dialguard
