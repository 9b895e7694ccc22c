package payment

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"example.com/billing/internal/domain"
)

// failure gives meaning to an attempt that got no status. ctx is the attempt's.
func failure(ctx context.Context, sent bool, err error) result {
	why := reason(ctx, err)
	switch {
	case errors.Is(err, errProxyAuth):
		return meaningOf(http.StatusProxyAuthRequired).result(domain.Answer{
			Status: http.StatusProxyAuthRequired, Detail: "proxy: 407 proxy authentication required",
		})
	case sent:
		return unanswered().result(domain.Answer{Posts: 1, Detail: "no answer: " + why})
	case errors.Is(ctx.Err(), context.Canceled):
		// It was not the network that failed, we were called off.
		return result{Answer: domain.Answer{Kind: domain.Withheld, Detail: "not sent: " + why}}
	default:
		return unsent().result(domain.Answer{Detail: "not sent: " + why})
	}
}

// reason names an error in fixed words. Its text is not used: it may hold
// addresses, credentials or what the other side sent.
func reason(ctx context.Context, err error) string {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return "cancelled"
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &dns):
		return "dns lookup failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &cert), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return "tls failure"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.Is(err, errBodyTooLong):
		return "body too long"
	default:
		return "connection failed"
	}
}
