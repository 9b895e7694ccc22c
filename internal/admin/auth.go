package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// maxTokenBytes bounds a bearer token.
const maxTokenBytes = 1024

// access is what a bearer token allows.
type access uint8

const (
	accessNone access = iota
	accessRead
	accessWrite
)

// guard decides who may ask for what.
type guard struct {
	operator, reader *[sha256.Size]byte // digests of the tokens; nil without one
	insecure         bool
}

func newGuard(cfg *Config) *guard {
	return &guard{operator: digest(cfg.Token), reader: digest(cfg.ReadToken), insecure: cfg.Insecure}
}

// digest makes tokens of every length equally long, so that comparing them takes
// the same time whatever was sent.
func digest(token string) *[sha256.Size]byte {
	if token == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	return &sum
}

func validToken(token string) bool {
	if len(token) > maxTokenBytes {
		return false
	}
	for _, b := range []byte(token) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// middleware lets a request pass that is allowed to.
func (g *guard) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.insecure || open(r) {
			next.ServeHTTP(w, r)
			return
		}
		switch granted := g.access(r); {
		case granted == accessNone:
			w.Header().Set("WWW-Authenticate", `Bearer realm="billing"`)
			writeProblem(w, r, newProblem(http.StatusUnauthorized, "a valid bearer token is needed"))
		case granted == accessRead && !safe(r.Method):
			writeProblem(w, r, newProblem(http.StatusForbidden, "the read token allows reads only"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// access returns what the request's token allows. Both tokens are compared,
// whichever it is.
func (g *guard) access(r *http.Request) access {
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return accessNone
	}
	scheme, token, _ := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return accessNone
	}
	sent := digest(token)
	operator, reader := same(g.operator, sent), same(g.reader, sent)
	switch {
	case operator:
		return accessWrite
	case reader:
		return accessRead
	}
	return accessNone
}

func same(token, sent *[sha256.Size]byte) bool {
	return token != nil && sent != nil && subtle.ConstantTimeCompare(token[:], sent[:]) == 1
}

// open reports whether the request is for a route that takes no token. The path
// is compared as it was sent: an encoded spelling is not among them.
func open(r *http.Request) bool {
	if r.URL.RawPath != "" {
		return false
	}
	switch r.URL.Path {
	case pathLive, pathReady, pathHealth, pathMetrics:
		return true
	}
	return false
}

// safe reports whether the method only reads (RFC 9110, 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
