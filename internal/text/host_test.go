package text_test

import (
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/text"
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
