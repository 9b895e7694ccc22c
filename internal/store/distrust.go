package store

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// refused marks a session by which a row was refused.
const refused = "billing: refused by a check"

// distrust makes a pool part with a session whose row a check has refused, once the session is
// given back: it may keep a list of ranges that lacks one, and be refused again and again.
// Another one lists them anew.
func distrust(c *pgx.ConnConfig) stdlib.OptionOpenDB {
	then := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.Code == checkViolation {
			conn.CustomData()[refused] = true
		}
		return then(conn, err)
	}
	return stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
		if conn.PgConn().CustomData()[refused] != nil {
			return driver.ErrBadConn
		}
		return nil
	})
}
