package torture

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// adminTimeout bounds a wish to a victim, which may be stopped or dead.
const adminTimeout = 2 * time.Second

// intake asks the victim to pause or to resume its intake. One that is gone need not be
// asked: nobody minds.
func (m *member) intake(ctx context.Context, what string) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.base+"/api/v1/consumer/"+what, strings.NewReader(`{"reason":"torture"}`))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Operator", "torture")
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}
