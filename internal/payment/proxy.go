package payment

import (
	"context"
	"errors"
	"net/http"
	"net/url"
)

// errProxyAuth: the proxy wants credentials before it opens a tunnel. It is the
// 407 of the answer table, and surely nothing was sent to the provider.
var errProxyAuth = errors.New("payment: proxy authentication required")

// tunnelOnly gives https the environment's proxy, and http none. See doc.go.
func tunnelOnly(request *http.Request) (*url.URL, error) {
	if request.URL.Scheme != "https" {
		return nil, nil
	}
	return http.ProxyFromEnvironment(request)
}

func proxyRefusal(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusProxyAuthRequired {
		return errProxyAuth
	}
	return nil
}
