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

// setSecurityHeaders sets what every response has.
func setSecurityHeaders(h http.Header) {
	h["X-Content-Type-Options"] = headerNoSniff
	h["Cross-Origin-Resource-Policy"] = headerSameOrigin
	h["Referrer-Policy"] = headerNoReferrer
	h["Content-Security-Policy"] = headerContentsPolicy
}
