package text

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var (
	hostLabel    = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)
	topLevelName = regexp.MustCompile(`^([a-z]{2,63}|xn--[a-z0-9-]{1,59})$`)

	// privateSuffixes are names that the public DNS does not have: RFC 2606, 6761, 6762, 8375, and
	// what networks use by custom.
	privateSuffixes = []string{
		"localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "arpa", "onion",
		"test", "invalid",
	}
)

const maxHostBytes = 253

// IsPublicHost reports whether a text is the name of a host as the public DNS may have it, in lower
// case: with a dot, and neither an address in any spelling nor under a private suffix.
func IsPublicHost(host string) bool {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	return len(host) <= maxHostBytes && len(labels) > 1 && topLevelName.MatchString(last) &&
		!slices.Contains(privateSuffixes, last) &&
		!slices.ContainsFunc(labels, func(label string) bool { return !hostLabel.MatchString(label) })
}

// IsLocalHost reports whether a host of a request, without its port, can only be that of a network
// of one's own: an address, a name without a dot, or a name under a suffix that the public DNS does
// not have. A page elsewhere cannot have such a name (DNS rebinding).
func IsLocalHost(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case len(labels) == 1:
		return true
	case last == "arpa": // zones of addresses are delegated to their owners
		return strings.HasSuffix(host, ".home.arpa")
	default:
		return last == kubernetesService || slices.Contains(privateSuffixes, last)
	}
}

// kubernetesService ends the short names of services in Kubernetes, "name.namespace.svc".
const kubernetesService = "svc"
