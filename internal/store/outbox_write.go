package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"example.com/billing/internal/domain"
)

// Everything else about a row is the database's to say: its transaction, its place
// within it, and the slot of the hour.
const insertMessage = `
INSERT INTO outbox (kind, key, value, headers)
SELECT kind, key, value, headers FROM unnest(?::text[], ?::bytea[], ?::bytea[], ?::bytea[]) AS u (kind, key, value, headers)`

// messageTable is outbox with the columns of insertMessage.
func messageTable() table { return table{"outbox", []string{"kind", "key", "value", "headers"}} }

// Publish implements [domain.Tx].
func (t tx) Publish(ctx context.Context, messages []domain.Message) error {
	for chunk := range chunks(refs(messages), messageBytes) {
		headers := make([]blob, len(chunk))
		for i, m := range chunk {
			encoded, err := domain.EncodeHeaders(m.Headers)
			if err != nil {
				return fmt.Errorf("insert outbox: %w", err)
			}
			headers[i] = encoded
		}
		columns := []columnar{
			columnOf(chunk, func(m *domain.Message) pgtype.Text { return toText(string(m.Kind)) }),
			columnOf(chunk, func(m *domain.Message) blob { return m.Key }),
			columnOf(chunk, func(m *domain.Message) blob { return m.Value }),
			columnOf(headers, func(encoded blob) blob { return encoded }),
		}
		if err := t.append(ctx, columns, len(chunk), copies(chunk, messageBytes)); err != nil {
			return fmt.Errorf("insert outbox: %w", err)
		}
	}
	return nil
}

// append adds messages, which no key can keep out.
func (t tx) append(ctx context.Context, columns []columnar, rows int, copying bool) error {
	if copying {
		return copyRows(ctx, t.conn, true, messageTable(), rows, columns)
	}
	return t.db.WithContext(ctx).Exec(insertMessage, params(columns)...).Error
}

// messageBytes is what a message adds to a statement.
func messageBytes(m *domain.Message) int {
	n := len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
