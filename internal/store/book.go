package store

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"example.com/billing/internal/domain"
)

// tx is one open transaction, and the connection that it is open on.
type tx struct {
	db   *gorm.DB
	conn *sql.Conn
}

var (
	_ domain.Book = (*Store)(nil)
	_ domain.Tx   = tx{}
)

// Transact implements [domain.Book].
func (s *Store) Transact(ctx context.Context, fn func(domain.Tx) error) error {
	return transact(ctx, s.main, fn)
}

// Aside implements [domain.Book].
func (s *Store) Aside(ctx context.Context, fn func(domain.Tx) error) error {
	return transact(ctx, s.side, fn)
}

// transact is the one place where a transaction begins and ends.
func transact(ctx context.Context, db *gorm.DB, fn func(domain.Tx) error) error {
	err := onConn(ctx, db, func(g *gorm.DB, conn *sql.Conn) error {
		return g.Transaction(func(g *gorm.DB) error {
			return fn(tx{g, conn})
		}, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	})
	return translate(err)
}

// onConn runs fn with a connection of the pool, for GORM and for what goes past it.
func onConn(ctx context.Context, db *gorm.DB, fn func(*gorm.DB, *sql.Conn) error) error {
	return db.WithContext(ctx).Connection(func(g *gorm.DB) error {
		conn, ok := g.Statement.ConnPool.(*sql.Conn)
		if !ok {
			return errUnlikeDriver
		}
		return fn(g, conn)
	})
}

// snapshot runs fn in a read-only transaction that sees one state throughout.
func snapshot(ctx context.Context, db *gorm.DB, fn func(*gorm.DB) error) error {
	return db.WithContext(ctx).Transaction(fn, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}
