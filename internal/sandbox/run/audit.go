package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// auditTimeout bounds the audit of a run.
const auditTimeout = 2 * time.Minute

// Audit is what `billing audit` says of the run, once billing has ended.
type Audit struct {
	Clean    bool             `json:"clean"`
	Records  int64            `json:"records"`
	Total    int64            `json:"findings_total"`
	Problems map[string]int64 `json:"problems"`
	Kinds    map[string]int64 `json:"kinds"`
	Provider struct {
		Asked   bool  `json:"asked"`
		Lookups int64 `json:"lookups"`
	} `json:"provider"`
}

// audit lets billing itself prove the run.
func (p *parts) audit(ctx context.Context) (Audit, error) {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	o := p.options
	command := exec.CommandContext(ctx, o.Billing, "audit", "--json", "--lookup-rate", "100000") //nolint:gosec // the binary under test
	command.Dir = p.dir
	command.Env = o.childEnviron(
		"KAFKA_BROKERS="+strings.Join(p.brokers, ","), "KAFKA_TOPIC="+o.Topic, "KAFKA_GROUP_ID="+o.Group,
		"DATABASE_URL="+p.url, "PAYMENT_URL="+p.provider.URL(), "PAYMENT_LOOKUP=true",
	)
	var said, complaints bytes.Buffer
	command.Stdout, command.Stderr = &said, &complaints
	err := command.Run()
	var a Audit
	if json.Unmarshal(said.Bytes(), &a) != nil {
		return a, fmt.Errorf("billing audit: %w: %s", errors.Join(err, ctx.Err()), strings.TrimSpace(complaints.String()))
	}
	return a, nil // its exit code says what the report says
}

// audit: what billing proves of itself.
func (j *judge) audit() {
	a := &j.f.Audit
	note := "one end for each offset"
	if a.Provider.Asked {
		note += fmt.Sprintf("; %s lookups at the provider", number(a.Provider.Lookups))
	}
	if !a.Clean {
		note += "; not so: " + list(a.Problems)
	}
	j.line("audit", a.Records, a.Clean && a.Records == j.f.Topic.Records && (a.Kinds["not_yet_reached"] == 0 || j.f.Lag > 0), "%s", note)
}
