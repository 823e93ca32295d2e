package handlers

import "net/http"

// The API is read by programs and by pages of listed origins through CORS. It is never a page, a
// frame or a script by itself, so a browser that was tricked into showing a response must run
// nothing of it. Strict-Transport-Security belongs to the place where TLS ends: the balancer.
var (
	headerNoSniff        = []string{"nosniff"}
	headerSameOrigin     = []string{"same-origin"} // other sites cannot embed it; CORS is not concerned
	headerNoReferrer     = []string{"no-referrer"}
	headerContentsPolicy = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// setSecurityHeaders sets what protects browsers. A request with a bearer token comes from no
// navigation and from no element of a page: only a script can send one, by CORS, and reads the
// response as data. Its response has only what concerns data, since the others cost a tenth of the
// CPU of a short request: net/http copies, sorts and checks each header, and its map grows at nine.
func setSecurityHeaders(h http.Header, hasBearerToken bool) {
	h["X-Content-Type-Options"] = headerNoSniff
	if hasBearerToken {
		return
	}
	h["Cross-Origin-Resource-Policy"] = headerSameOrigin
	h["Referrer-Policy"] = headerNoReferrer
	h["Content-Security-Policy"] = headerContentsPolicy
}
