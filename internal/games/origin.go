package games

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// AnyOrigin is the pattern that every origin fits, "null" too. It is for development.
const AnyOrigin = "*"

// originForm is scheme://host[:port]; the host is a name, of which the first label may be "*", or an address.
var originForm = regexp.MustCompile(`^([a-z][a-z0-9+.-]*)://((?:\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)

var defaultPorts = map[string]string{"http": ":80", "https": ":443"}

// readOrigin brings a pattern into the form in which browsers spell origins: lower case, no default port.
func readOrigin(pattern string, rules Options) (string, error) {
	text := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(pattern), "/"))
	switch {
	case text == "null":
		return text, nil
	case text == AnyOrigin && rules.AnyOrigin:
		return text, nil
	case text == AnyOrigin:
		return "", fmt.Errorf("must name origins: * is for development only")
	case len(text) > 255:
		return "", fmt.Errorf("must have at most 255 characters")
	}
	m := originForm.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("must look like https://game.example.com, https://*.example.com:8443 or null")
	}
	scheme, host, port := m[1], m[2], m[4]
	if strings.Contains(host, "..") {
		return "", fmt.Errorf("has an empty label")
	}
	if rest, wild := strings.CutPrefix(host, "*."); wild && !strings.Contains(rest, ".") && rest != "localhost" {
		return "", fmt.Errorf("must name at least two labels after *")
	}
	if inner, bracketed := strings.CutPrefix(host, "["); bracketed {
		address, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil {
			return "", fmt.Errorf("has no valid address")
		}
		host = "[" + address.String() + "]"
	}
	if port != "" {
		if n, err := strconv.Atoi(port[1:]); err != nil || n < 1 || n > 65535 {
			return "", fmt.Errorf("has no valid port")
		}
		if port == defaultPorts[scheme] {
			port = ""
		}
	}
	return scheme + "://" + host + port, nil
}

// matchOrigin compares an origin with a pattern that readOrigin made. "*." stands for one or more whole labels.
func matchOrigin(pattern, origin string) bool {
	if pattern == origin || pattern == AnyOrigin {
		return true
	}
	head, tail, wild := strings.Cut(pattern, "*")
	if !wild || len(origin) <= len(head)+len(tail) || !strings.HasPrefix(origin, head) || !strings.HasSuffix(origin, tail) {
		return false
	}
	labels := origin[len(head) : len(origin)-len(tail)]
	return !strings.ContainsAny(labels, "/:@?#") && labels[0] != '.'
}

func checkOrigins(c *checked, patterns []string, rules Options) []string {
	if len(patterns) > maxOrigins {
		c.at("origins", "range", fmt.Sprintf("must be at most %d", maxOrigins))
		return nil
	}
	origins := make([]string, 0, len(patterns))
	for i, pattern := range patterns {
		origin, err := readOrigin(pattern, rules)
		if err != nil {
			c.at(fmt.Sprintf("origins[%d]", i), "format", err.Error())
			continue
		}
		if !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins
}

func checkName(c *checked, name string) string {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		c.at("name", "required", "must not be empty")
	case utf8.RuneCountInString(name) > maxName:
		c.at("name", "range", fmt.Sprintf("must have at most %d characters", maxName))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		c.at("name", "format", "must be text without control characters")
	}
	return name
}
