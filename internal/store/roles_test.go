package store_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/store/storetest"
)

// newRole returns a role that grant gives its rights, until the test ends.
func newRole(t *testing.T, conn *pgx.Conn, grant string) string {
	t.Helper()
	role := "clerk_" + uuid.NewString()[:8]
	execute(t, conn, fmt.Sprintf(`CREATE ROLE %[1]q LOGIN PASSWORD 'x'; `+grant, role))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, err := conn.Exec(ctx, fmt.Sprintf(`DROP OWNED BY %[1]q; DROP ROLE %[1]q`, role))
		require.NoError(t, err)
	})
	return role
}

// asRole returns the URL of a database for a role that grant gives its rights.
func asRole(t *testing.T, databaseURL string, conn *pgx.Conn, grant string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	require.NoError(t, err)
	u.User = url.UserPassword(newRole(t, conn, grant), "x")
	return u.String()
}

// Where a login takes on the role of the owner, as short-lived ones do, its sessions still bear its own name.
func TestStalledSessionsAreEndedThoughTheyHaveTakenOnARole(t *testing.T) {
	t.Parallel()
	databaseURL := storetest.URL(t)
	conn := storetest.Conn(t, databaseURL)
	login := asRole(t, databaseURL, conn, `GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO %[1]q`)
	u, err := url.Parse(login)
	require.NoError(t, err)
	owner := newRole(t, conn, `GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO %[1]q`)
	execute(t, conn, fmt.Sprintf(`GRANT %q TO %q`, owner, u.User.Username()))
	query := u.Query()
	query.Set("role", owner)
	u.RawQuery = query.Encode()

	c := storetest.Config(u.String())
	c.SideTimeout = 100 * time.Millisecond
	s := open(t, c)
	side, err := s.Pools()["side"].Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, side.PingContext(t.Context()))
	copying := stall(t, side)
	require.Eventually(t, func() bool { return stalledFor(t, conn, c.SideTimeout) }, patience, 10*time.Millisecond)
	ended, err := s.EndStalled(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, ended)
	require.Equal(t, "57P01", stateOf(<-copying))
	require.NoError(t, side.Close())
}

func stalledFor(t *testing.T, conn *pgx.Conn, d time.Duration) bool {
	t.Helper()
	return value[bool](t, conn, `
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'ClientRead' AND state = 'active'
	AND query_start < clock_timestamp() - make_interval(secs => $1))`, d.Seconds())
}
