package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/ops/trail"
	"github.com/parlor-games/parlor/internal/players/auth"
	"github.com/parlor-games/parlor/internal/players/ratelimit"
	"github.com/parlor-games/parlor/web"
)

// The console is a page for the operator. The internal listener serves it; in development the
// public one does as well. Its page calls the API below its own path: /console/api/v1/… is
// /api/v1/…, with the operator's session in the place of a bearer token. So the cookie goes to
// /console only, and no other path reads it.
//
// A page of another origin cannot act in the operator's name. The cookie is SameSite=Strict. Each
// call needs a header that a browser sends to another origin only after a preflight, which always
// fails here. And where a browser says which page makes the call, it must be one of this origin.
const (
	consolePath       = "/console"
	consoleSession    = consolePath + "/session"
	consoleAPIPath    = consolePath + "/api/v1/" // /api/v1/ below the console
	consoleCookieName = "parlor_console"
	consoleHeader     = "Parlor-Console" // every call of the page has it

	consoleAdminPath = "/api/v1/admin/console-" // what the operator does about the console itself
	consoleTarget    = "console"                // of such acts in the trail
)

// isConsolePath reports whether a path belongs to the console.
func isConsolePath(path string) bool {
	return path == consolePath || strings.HasPrefix(path, consolePath+"/")
}

// newConsoleHandler returns the handler of all paths of the console.
func (s *Server) newConsoleHandler() http.Handler {
	sessions := gin.New()
	sessions.HandleMethodNotAllowed = true
	sessions.ForwardedByClientIP = false
	for _, rt := range []route{
		{method: post, handle: withBody(s.openConsoleSession)},
		{method: get, handle: s.getConsoleSession},
		{method: del, handle: s.closeConsoleSession},
	} {
		rt.path, rt.rateLimitClass = consoleSession, ratelimit.SignIn
		sessions.Handle(rt.method, rt.path, s.ginHandler(&rt))
	}
	sessions.NoMethod(s.ginHandler(&route{path: "none", handle: alwaysReturn(apierror.MethodNotAllowed)}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isCall := strings.HasPrefix(r.URL.Path, consoleAPIPath)
		if r.URL.Path != consoleSession && !isCall {
			web.Console().ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodOptions { // a preflight: no other origin may call
			w.Header().Set("Allow", "GET, POST, PUT, PATCH, DELETE")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		call := &consoleCall{fault: checkSameOrigin(r)}
		for _, cookie := range r.CookiesNamed(consoleCookieName) {
			call.sessionSecrets = append(call.sessionSecrets, cookie.Value)
		}
		call.sessionSecrets = call.sessionSecrets[:min(maxConsoleCookies, len(call.sessionSecrets))]
		r = r.Clone(context.WithValue(r.Context(), consoleCallKey{}, call))
		for _, header := range []string{"Origin", "Cookie", "Authorization"} { // no CORS, and one credential only
			r.Header.Del(header)
		}
		if !isCall {
			sessions.ServeHTTP(w, r)
			return
		}
		r.URL.Path = strings.TrimPrefix(r.URL.Path, consolePath)
		r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, consolePath)
		s.engine.ServeHTTP(w, r)
	})
}

// consoleCall is what the context of a request has that came through the console.
type consoleCall struct {
	sessionSecrets []string // of the cookies
	fault          error    // why the call does not come from the page of the console, or nil
}

// maxConsoleCookies is how many cookies of a request are tried. Another service on the same host
// can set one of the same name, which must not lock the operator out.
const maxConsoleCookies = 8

type consoleCallKey struct{}

// consoleCall returns how a request came through the console, nil when it did not.
func (r *request) consoleCall() *consoleCall {
	call, _ := r.Request.Context().Value(consoleCallKey{}).(*consoleCall)
	return call
}

// authenticate returns the operator whose session the call shows.
func (c *consoleCall) authenticate(r *request) (auth.Authentication, error) {
	if c.fault != nil {
		return auth.Authentication{}, c.fault
	}
	a, err := r.server.Auth.AuthenticateConsole(r.ctx(), "") // no cookie
	for _, sessionSecret := range c.sessionSecrets {
		if a, err = r.server.Auth.AuthenticateConsole(r.ctx(), sessionSecret); !errors.Is(err, apierror.Unauthenticated) {
			break
		}
	}
	return a, err
}

// checkSameOrigin returns forbidden for a call that the page of the console did not make.
func checkSameOrigin(r *http.Request) error {
	h := r.Header
	if h.Get(consoleHeader) == "" {
		return apierror.Forbidden.WithReason("a call of the console has the header %s", consoleHeader)
	}
	errOtherOrigin := apierror.Forbidden.WithReason("only pages of this origin may call the console")
	if site := h.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return errOtherOrigin
	}
	for _, origin := range h["Origin"] {
		if u, err := url.Parse(origin); err != nil || u.Host != r.Host {
			return errOtherOrigin
		}
	}
	return nil
}

type consoleLinkInput struct {
	LinkSecret string `json:"link" required:"true"`
}

// consoleSessionView is a session as the page of the console sees it.
type consoleSessionView struct {
	Operator  int       `json:"operator"` // place of the operator's key, as the trail names it
	ExpiresAt time.Time `json:"expiresAt"`
}

func consoleSessionResponse(a auth.Authentication, err error) (response, error) {
	return okResponse(&consoleSessionView{a.KeyID, a.ExpiresAt}), err
}

// openConsoleSession exchanges the secret of a link for a session, whose secret goes into a cookie
// that no script can read.
func (s *Server) openConsoleSession(r *request, in *consoleLinkInput) (response, error) {
	if fault := r.consoleCall().fault; fault != nil {
		return response{}, fault
	}
	sessionSecret, a, err := s.Auth.OpenConsoleSession(r.ctx(), in.LinkSecret)
	if err != nil {
		return response{}, err
	}
	s.Trail.Record(r.ctx(), trail.Write{
		Caller: a.Caller, Action: "openConsoleSession", Target: consoleTarget, RequestID: r.requestID, Outcome: trail.Done,
		After: map[string]any{"expiresAt": a.ExpiresAt, "address": r.addressIdentity()},
	})
	r.setConsoleCookie(sessionSecret, int(auth.ConsoleSessionTTL/time.Second))
	return consoleSessionResponse(a, nil)
}

func (s *Server) getConsoleSession(r *request) (response, error) {
	return consoleSessionResponse(r.consoleCall().authenticate(r))
}

func (s *Server) closeConsoleSession(r *request) (response, error) {
	call := r.consoleCall()
	if call.fault != nil {
		return response{}, call.fault
	}
	r.setConsoleCookie("", -1)
	for _, sessionSecret := range call.sessionSecrets {
		if err := s.Auth.CloseConsoleSession(r.ctx(), sessionSecret); err != nil {
			return response{}, err
		}
	}
	return response{status: http.StatusNoContent}, nil
}

// setConsoleCookie sets the cookie of a session for some seconds, or removes it.
func (r *request) setConsoleCookie(value string, maxAgeSeconds int) {
	http.SetCookie(r.Writer, &http.Cookie{
		Name: consoleCookieName, Value: value, Path: consolePath, MaxAge: maxAgeSeconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: isHTTPS(r.Request, r.server.TrustedProxies),
	})
}

// isHTTPS reports whether the client uses HTTPS, to the node or to a trusted proxy.
func isHTTPS(r *http.Request, trusted []netip.Prefix) bool {
	if r.TLS != nil {
		return true
	}
	connection, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && r.Header.Get("X-Forwarded-Proto") == "https" &&
		slices.ContainsFunc(trusted, func(network netip.Prefix) bool {
			return network.Contains(connection.Addr().Unmap())
		})
}

// consoleLinkView is a one-time link: the address is that of the console with "#link=" and the
// secret behind it, a part that browsers keep to themselves.
type consoleLinkView struct {
	LinkSecret string `json:"link"`
	Path       string `json:"path"`
	ExpiresIn  int64  `json:"expiresIn"` // seconds
}

// createConsoleLink makes a link to the console. A session of the console cannot: it would outlive
// its eight hours.
func (s *Server) createConsoleLink(r *request) (response, error) {
	if r.consoleCall() != nil {
		return response{}, apierror.Forbidden.WithReason("a link is made with the operator's key, not from the console")
	}
	link, err := s.Auth.IssueConsoleLink(r.ctx(), r.caller, auth.ConsoleLinkTTL)
	return createdResponse(&consoleLinkView{
		link.Secret, ConsoleLinkPath(link.Secret), int64(link.ExpiresIn / time.Second),
	}), err
}

// ConsoleLinkPath returns the path of the console with the secret of a link.
func ConsoleLinkPath(linkSecret string) string { return consolePath + "#link=" + linkSecret }

func (s *Server) closeConsoleSessions(r *request) (response, error) {
	return response{status: http.StatusNoContent}, s.Auth.CloseConsoleSessions(r.ctx(), r.caller)
}
