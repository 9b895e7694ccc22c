package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// clientBound is the longest that CheckHealth takes: more than the longest check.
	clientBound = 5 * time.Second
	// maxAnswerBytes is how much of an answer CheckHealth reads.
	maxAnswerBytes = 64 << 10
)

// CheckHealth asks the service that listens on addr (ADMIN_ADDR) whether it is
// ready; nil when it is. An address of every interface is asked on loopback. It
// takes no longer than 5 seconds.
func CheckHealth(ctx context.Context, addr string) error {
	target, err := loopback(addr)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clientBound)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+target+pathReady, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", target, err)
	}
	// No proxy: the service is on this machine, or where the operator says.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", target, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return notReady(response)
}

// notReady says why, as far as the answer tells.
func notReady(response *http.Response) error {
	var p problem
	body := io.LimitReader(response.Body, maxAnswerBytes)
	if err := json.NewDecoder(body).Decode(&p); err != nil || p.Detail == "" {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	var reasons []string
	for _, c := range p.Components {
		if c.Status == StatusFail {
			reasons = append(reasons, c.Name+": "+c.Reason)
		}
	}
	if len(reasons) == 0 {
		return fmt.Errorf("%s: %s", response.Status, p.Detail)
	}
	return fmt.Errorf("not ready: %s", strings.Join(reasons, "; "))
}

// loopback returns where to reach an address that is listened on from this machine.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("ADMIN_ADDR: %w", err)
	}
	if port == "" || port == "0" {
		return "", fmt.Errorf("ADMIN_ADDR: %q has no port to ask", addr)
	}
	switch ip := net.ParseIP(host); {
	case host == "", ip != nil && ip.Equal(net.IPv4zero):
		host = "127.0.0.1"
	case ip != nil && ip.Equal(net.IPv6unspecified):
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
