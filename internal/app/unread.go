package app

import (
	"context"
	"log/slog"

	"example.com/billing/internal/kafka"
	"example.com/billing/internal/store"
)

// newUnreadReader returns what tells which records are not consumed yet, by any group
// that shares the database: what they may still ask for is not forgotten.
func newUnreadReader(settings *Settings, s *store.Store, log *slog.Logger) (*kafka.UnreadReader, error) {
	cfg := settings.kafka()
	if settings.Flow.OffsetStore == inPostgres {
		cfg.Positions = s.Offsets("retention") // it takes no partition
	}
	return kafka.NewUnreadReader(cfg, log, func(ctx context.Context) ([]kafka.Followed, error) {
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
