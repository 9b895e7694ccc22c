package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"example.com/billing/internal/domain"
)

// minCopied is how many rows are worth a COPY: it takes a round trip more than a prepared statement, and is parsed each time.
// From some dozens on it costs the server half as much, and the client a third of the memory.
const minCopied = 16

// maxCopied is how many bytes are copied at most. The server counts the time in which the rows of a COPY arrive as that of the
// statement, and ends it when that is over; what an INSERT takes is there as a whole before its time begins. So a COPY asks
// for 200 KB/s at least where a statement has five seconds, and whatever is larger does not depend on the network.
const maxCopied = 1 << 20

// copies reports whether rows are worth a COPY, and few enough bytes for one.
func copies[T any](rows []T, size func(T) int) bool {
	if len(rows) < minCopied {
		return false
	}
	bytes := 0
	for _, row := range rows {
		bytes += size(row)
	}
	return bytes <= maxCopied
}

// errUnlikeDriver cannot happen while the pools are those of this package.
var errUnlikeDriver = errors.New("the connection is not one of pgx")

// columnar is a column of many rows, as [column] holds it.
type columnar interface{ Index(row int) any }

// table is where rows are copied to.
type table struct {
	name    string
	columns []string
}

// columnNames are the names in a list of a statement.
func columnNames(list string) []string {
	names := strings.Split(list, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return names
}

// params passes columns to a statement, for unnest.
func params(columns []columnar) []any {
	p := make([]any, len(columns))
	for i, c := range columns {
		p[i] = c
	}
	return p
}

// met gives a key that is there already its meaning: somebody else was faster.
func met(what string, err error) error {
	if err == nil {
		return nil
	}
	if sqlState(err) == uniqueViolation {
		return fmt.Errorf("%s: %w: %w", what, domain.ErrMoved, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// copied feeds COPY with rows out of columns. A cell is handed on by its address, and costs no allocation.
type copied struct {
	columns []columnar
	cells   []any
	rows    int
	row     int
}

// Next implements [pgx.CopyFromSource].
func (c *copied) Next() bool {
	c.row++
	return c.row <= c.rows
}

// Values implements [pgx.CopyFromSource].
func (c *copied) Values() ([]any, error) {
	for i, column := range c.columns {
		c.cells[i] = column.Index(c.row - 1)
	}
	return c.cells, nil
}

// Err implements [pgx.CopyFromSource].
func (*copied) Err() error { return nil }

// copyRows appends rows to a table by COPY, all or none. A row that meets a unique key of another transaction waits for it, as an
// INSERT would; one that meets a key that is there fails them all with SQLSTATE 23505: there is no ON CONFLICT.
//
// Within says that a transaction is open on the connection, and must be: one that was rolled back meanwhile, because its
// context ended, must not let the rows stand by themselves.
func copyRows(ctx context.Context, conn *sql.Conn, within bool, to table, rows int, columns []columnar) error {
	return conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return errUnlikeDriver
		}
		if within && c.Conn().PgConn().TxStatus() != 'T' {
			return sql.ErrTxDone
		}
		n, err := c.Conn().CopyFrom(ctx, pgx.Identifier{to.name}, to.columns, &copied{columns: columns, cells: make([]any, len(columns)), rows: rows})
		if err != nil {
			return err
		}
		if n != int64(rows) {
			return fmt.Errorf("%d of %d rows were copied", n, rows)
		}
		return nil
	})
}
