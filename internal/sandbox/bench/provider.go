package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"example.com/billing/internal/payment/paymenttest"
)

// askTimeout bounds one question to a part.
const askTimeout = 15 * time.Second

// provider asks and tells the provider's process.
type provider struct{ url string }

// prepare empties ledger and meter and sets how the provider behaves; text is that of `sandbox provider --fault`.
func (p provider) prepare(ctx context.Context, text string) error {
	if err := p.do(ctx, http.MethodPut, "/_faults", text, nil); err != nil {
		return err
	}
	if err := p.do(ctx, http.MethodPost, "/_reset", "", nil); err != nil {
		return err
	}
	return p.do(ctx, http.MethodDelete, "/_meter", "", nil)
}

func (p provider) meter(ctx context.Context) (m Meter, err error) {
	return m, p.do(ctx, http.MethodGet, "/_meter", "", &m)
}

func (p provider) ledger(ctx context.Context) (l paymenttest.Ledger, err error) {
	return l, p.do(ctx, http.MethodGet, "/_ledger", "", &l)
}

func (p provider) do(ctx context.Context, method, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	request.Header.Set("Content-Type", "text/plain")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("provider: %s %s: %w", method, path, err)
	case response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("provider: %s %s: %s: %s", method, path, response.Status, answer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("provider: %s %s: %w", method, path, err)
	}
	return nil
}
