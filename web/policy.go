package web

import (
	"net/http"
	"regexp"
	"strings"
)

// policy is the Content-Security-Policy of a section: the things that a browser lets its pages do.
// Every page may load scripts, styles and images of its own host and nothing else; none may have a
// script or a style in its HTML, or evaluate text. Other origins may frame none.
type policy struct {
	connect bool // scripts may call the node, over HTTP and WebSocket
	forms   bool // forms may be sent to the node
	frames  bool // the page may have frames of the node
	framed  bool // the page may be a frame of another page of the node
}

// hostHeader matches a host that can stand in a policy: a semicolon or a space would end the
// directive.
var hostHeader = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

// contentSecurityPolicy returns the header for pages at a host. 'self' covers WebSockets in new
// browsers only, so their addresses are named.
func (p policy) contentSecurityPolicy(host string) string {
	directives := []string{
		"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
	}
	if p.connect {
		connect := "connect-src 'self'"
		if hostHeader.MatchString(host) {
			connect += " ws://" + host + " wss://" + host
		}
		directives = append(directives, connect)
	}
	form := "form-action 'none'"
	if p.forms {
		form = "form-action 'self'"
	}
	if p.frames {
		directives = append(directives, "frame-src 'self'")
	}
	ancestors := "frame-ancestors 'none'"
	if p.framed {
		ancestors = "frame-ancestors 'self'"
	}
	return strings.Join(append(directives, "base-uri 'none'", form, ancestors), "; ")
}

// set sets the security headers of a page.
func (p policy) set(h http.Header, r *http.Request) {
	h.Set("Content-Security-Policy", p.contentSecurityPolicy(r.Host))
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}
