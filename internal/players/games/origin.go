package games

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
)

// AnyOriginPattern is the pattern that every origin matches, "null" too. It is for development.
const AnyOriginPattern = "*"

// maxOriginBytes bounds the text of one pattern.
const maxOriginBytes = 255

// originPatternRegexp is scheme://host[:port]; the host is a name, of which the first label may be
// "*", or an address.
var originPatternRegexp = regexp.MustCompile(
	`^([a-z][a-z0-9+.-]*)://((?:\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// normalizeOrigin returns a pattern in the form in which browsers spell origins: lower case, no
// default port.
func normalizeOrigin(pattern string, allowAny bool) (string, error) {
	origin := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(pattern), "/"))
	switch {
	case origin == "null", origin == AnyOriginPattern && allowAny:
		return origin, nil
	case origin == AnyOriginPattern:
		return "", errors.New("must name origins: * is for development only")
	case len(origin) > maxOriginBytes:
		return "", errors.New("must have at most 255 characters")
	}
	m := originPatternRegexp.FindStringSubmatch(origin)
	if m == nil {
		return "", errors.New("must look like https://game.example.com, https://*.example.com:8443 or null")
	}
	scheme, port := m[1], m[4]
	host, err := normalizeHost(m[2])
	if err != nil {
		return "", err
	}
	if port != "" {
		if n, err := strconv.Atoi(port[1:]); err != nil || n < 1 || n > 65535 {
			return "", errors.New("has no valid port")
		}
		if port == defaultPorts[scheme] {
			port = ""
		}
	}
	return scheme + "://" + host + port, nil
}

// CheckOrigin returns what is wrong with a pattern of origins as a game in production may have it.
func CheckOrigin(pattern string) error {
	_, err := normalizeOrigin(pattern, false)
	return err
}

func normalizeHost(host string) (string, error) {
	if strings.Contains(host, "..") {
		return "", errors.New("has an empty label")
	}
	rest, isWildcard := strings.CutPrefix(host, "*.")
	if isWildcard && !strings.Contains(rest, ".") && rest != "localhost" {
		return "", errors.New("must name at least two labels after *")
	}
	if bracketed, ok := strings.CutPrefix(host, "["); ok {
		address, err := netip.ParseAddr(strings.TrimSuffix(bracketed, "]"))
		if err != nil {
			return "", errors.New("has no valid address")
		}
		host = "[" + address.String() + "]"
	}
	return host, nil
}

// matchOrigin reports whether an origin matches a pattern of normalizeOrigin. "*." stands for one
// or more whole labels.
func matchOrigin(pattern, origin string) bool {
	if pattern == origin || pattern == AnyOriginPattern {
		return true
	}
	prefix, suffix, isWildcard := strings.Cut(pattern, "*")
	if !isWildcard || len(origin) <= len(prefix)+len(suffix) ||
		!strings.HasPrefix(origin, prefix) || !strings.HasSuffix(origin, suffix) {
		return false
	}
	labels := origin[len(prefix) : len(origin)-len(suffix)]
	return !strings.ContainsAny(labels, "/:@?#") && labels[0] != '.'
}

func normalizeOrigins(errs *apierror.FieldErrors, patterns []string, allowAny bool) []string {
	if len(patterns) > maxOrigins {
		errs.Add("origins", "range", fmt.Sprintf("must be at most %d", maxOrigins))
		return nil
	}
	origins := make([]string, 0, len(patterns))
	for i, pattern := range patterns {
		origin, err := normalizeOrigin(pattern, allowAny)
		if err != nil {
			errs.Add(fmt.Sprintf("origins[%d]", i), "format", err.Error())
			continue
		}
		if !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}
