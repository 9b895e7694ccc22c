package paymenttest

import (
	"io"
	"net/http"
	"strings"
)

// postCharge is the way of one POST: it is counted, its fault is drawn, it is
// charged at most once by the rules of its key, and answered.
func (p *Provider) postCharge(w http.ResponseWriter, r *http.Request) {
	b, plan := p.book.Load(), p.plan.Load()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		b.refuse()
		writeError(w, http.StatusBadRequest, "body_unreadable")
		return
	}
	key := strings.Clone(r.Header.Get("Idempotency-Key"))
	if key == "" || len(key) > maxKeyBytes {
		b.refuse()
		writeError(w, http.StatusBadRequest, "idempotency_key_missing")
		return
	}
	e, nth := b.arrive(key)
	if e == nil {
		writeError(w, http.StatusServiceUnavailable, "ledger_full")
		return
	}
	asked, err := parsePayload(body)
	if err != nil {
		b.malformed()
		writeError(w, http.StatusBadRequest, "invalid_request")
		return
	}
	same := b.bind(e, asked)

	dice := newDice(plan.seed, key, nth)
	fault := plan.draw(dice, key, asked.orderID)
	if fault != nil {
		b.played(fault.Action)
	}
	delay := plan.latency.sample(dice)
	if fault.isBefore() {
		p.wait(delay)
		if goOn := p.playBefore(fault, w, r); !goOn {
			return
		}
		delay = 0
	}
	switch b.begin(e, same, plan.source.IgnoreKeys) {
	case otherPayload:
		writeError(w, http.StatusUnprocessableEntity, "idempotency_key_reused")
		return
	case inProgress:
		writeError(w, http.StatusConflict, "idempotency_key_in_progress")
		return
	case settled:
		p.wait(delay)
	case fresh:
		p.wait(delay) // the key is in progress meanwhile, as at a slow provider
		settle(b, e, asked, fault)
	}
	p.playAfter(fault, w, r, b.look(e))
}

// settle finishes a charge that has begun.
func settle(b *book, e *entry, asked payload, fault *rule) {
	if fault != nil && fault.effect == effectDecline {
		b.decline(e, fault.declineCode())
		return
	}
	b.capture(e, asked)
}

// getCharge is the look-up by key. It does not call missing what may yet be charged.
func (p *Provider) getCharge(w http.ResponseWriter, r *http.Request) {
	e, ok := p.book.Load().find(r.URL.Query().Get("idempotencyKey"))
	if ok && e.status == open && e.busy > 0 {
		writeError(w, http.StatusConflict, "idempotency_key_in_progress")
		return
	}
	if !ok || e.status == open {
		writeError(w, http.StatusNotFound, "charge_not_found")
		return
	}
	writeJSON(w, http.StatusOK, appendCharge(nil, &e))
}
