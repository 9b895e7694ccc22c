package run

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"example.com/billing/internal/payment/paymenttest"
)

// Witness looks from outside at a service that somebody else runs and disturbs.
type Witness struct{ parts *parts }

// OpenWitness returns a witness of the service that o describes: its topic, its
// group and its binary, whose further settings are o.Env. The caller closes it.
func OpenWitness(ctx context.Context, o *Options, dir string, brokers []string, databaseURL string, provider *paymenttest.Server) (*Witness, error) {
	p := &parts{options: o, dir: dir, brokers: brokers, provider: provider, url: databaseURL}
	var err error
	if p.watcher, err = newWatcher(brokers, o.Topic, o.Group); err != nil {
		return nil, err
	}
	if p.books, err = openBooks(ctx, databaseURL, o.Group); err != nil {
		p.watcher.close()
		return nil, err
	}
	return &Witness{parts: p}, nil
}

// Close lets go of the connections.
func (w *Witness) Close() {
	w.parts.books.close()
	w.parts.watcher.close()
}

// Unfinished returns the events whose charge is begun and not finished, with the
// states of their intents.
func (w *Witness) Unfinished(ctx context.Context) (map[uuid.UUID]string, error) {
	return w.parts.books.unfinished(ctx)
}

// Rests reports what is not done yet; nothing when it is empty.
func (w *Witness) Rests(ctx context.Context) (string, error) {
	r, err := w.parts.remains(ctx)
	if err != nil || r.none() {
		return "", err
	}
	return r.String(), nil
}

// Stats asks the statistics page of an instance by the base of its admin API.
func (w *Witness) Stats(ctx context.Context, base string) (Stats, error) {
	i := instance{base: base}
	return i.stats(ctx)
}

// Read fills in what everybody says of the service once it has ended.
func (w *Witness) Read(ctx context.Context, f *Facts) error {
	return w.parts.read(ctx, f)
}

// read asks the topic, the tables and the provider.
func (p *parts) read(ctx context.Context, f *Facts) (err error) {
	if f.Lag, err = p.watcher.lag(ctx); err != nil {
		return fmt.Errorf("lag: %w", err)
	}
	if f.Topic, err = p.watcher.read(ctx); err != nil {
		return err
	}
	if f.Book, err = p.books.read(ctx); err != nil {
		return err
	}
	if f.Audit, err = p.audit(ctx); err != nil {
		return err
	}
	if f.Outcomes, f.Told, err = p.told(ctx); err != nil {
		return err
	}
	f.Ledger = p.provider.Ledger()
	f.Charges, f.Strange = ledgerCharges(p.provider.Provider)
	return nil
}
