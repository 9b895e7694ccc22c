package store

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
)

// anew returns a connection whose statements are planned for the very values that they
// are given. A plan for any values is cheaper to keep, but one over processed_event
// would lock every range of it, until the transaction ends; and retention could empty none.
func anew(ctx context.Context, db *gorm.DB) *gorm.DB {
	db = db.WithContext(ctx)
	db.Statement.ConnPool = unprepared{db.Statement.ConnPool}
	return db
}

// unprepared keeps of a statement what types its parameters have, and no plan.
type unprepared struct{ gorm.ConnPool }

func (u unprepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return u.ConnPool.ExecContext(ctx, query, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

func (u unprepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return u.ConnPool.QueryContext(ctx, query, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
