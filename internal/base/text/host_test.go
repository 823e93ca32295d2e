package text_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/text"
)

func TestWhichHostsArePublic(t *testing.T) {
	for host, want := range map[string]bool{
		"a.example": true, "cdn.a.example": true, "xn--mnchen-3ya.de": true, "a.xn--p1ai": true, "1.a.example": true,
		"": false, "example": false, "localhost": false, "a.localhost": false, "a.local": false, "a.internal": false,
		"printer.lan": false, "1.0.0.127.in-addr.arpa": false, "x.onion": false, "a.test": false,
		"127.0.0.1": false, "127.1": false, "2130706433": false, "0x7f.1": false, "0x7f.0x1": false, "::1": false,
		"[::1]": false, "a.example.": false, "a..example": false, "-a.example": false, "A.example": false,
		"münchen.de": false, "a.example:443": false, "a b.example": false, strings.Repeat("a.", 130) + "example": false,
	} {
		if got := text.IsPublicHost(host); got != want {
			t.Errorf("%q is public: %v, want %v", host, got, want)
		}
	}
}

func TestWhichHostsAreLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "10.1.2.3": true, "203.0.113.7": true, "::1": true, "[::1]": true, "[fe80::1%eth0]": true,
		"localhost": true, "LOCALHOST": true, "localhost.": true, "parlor-1": true, "a.localhost": true, "": true,
		"parlor-metrics.games.svc": true, "parlor-metrics.games.svc.cluster.local": true, "node.internal": true,
		"node.home.arpa": true, "node.lan": true,
		"evil.example": false, "evil.example.": false, "EVIL.example.COM": false, "127.0.0.1.evil.example": false,
		"-a.evil.com": false, "svc.evil.com": false, "localhost.evil.com": false, "1.0.0.127.in-addr.arpa": false,
		"evil.com%00.local.com": false,
	} {
		if got := text.IsLocalHost(host); got != want {
			t.Errorf("%q is local: %v, want %v", host, got, want)
		}
	}
}
