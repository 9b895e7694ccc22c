package app

import (
	"context"

	"example.com/billing/internal/kafka"
	"example.com/billing/internal/store"
)

// newUnreadReader returns what tells which records are not consumed yet, by any group
// that shares the database: what they may still ask for is not forgotten.
func newUnreadReader(cfg kafka.Config, s *store.Store) (*kafka.UnreadReader, error) {
	return kafka.NewUnreadReader(cfg, func(ctx context.Context) ([]kafka.Followed, error) {
		followers, err := s.Followers(ctx)
		if err != nil {
			return nil, err
		}
		followed := make([]kafka.Followed, len(followers))
		for i, f := range followers {
			followed[i] = kafka.Followed(f)
		}
		return followed, nil
	})
}
