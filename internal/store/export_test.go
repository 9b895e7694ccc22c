package store

import "database/sql"

// Pools returns the connections of the store by their names, so that a test can
// ask a session for its settings.
func (s *Store) Pools() map[string]*sql.DB {
	return map[string]*sql.DB{"main": s.pools[0], "side": s.pools[1], "archive": s.pools[2]}
}
