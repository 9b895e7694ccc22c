package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
	"example.com/billing/internal/store"
	"example.com/billing/internal/store/storetest"
)

// dies makes every session die that creates a table from now on, as its process would.
const dies = `
CREATE FUNCTION die() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); END $$;
CREATE EVENT TRIGGER die ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION die()`

// The constraint by which a large default partition is spared outlives the instance that
// has made it; without Clear every claim of the days would be refused when they have come.
func TestWhatAnAttachLeavesThatIsBrokenOffIsClearedAway(t *testing.T) {
	t.Parallel()
	s, databaseURL := storetest.Open(t)
	r := keeping(t, databaseURL)
	r.SetScanMax(0)
	claim(t, s, sightingsAt(epoch, 1))
	tomorrow := dayOf(time.Now().Add(24 * time.Hour))
	conn := storetest.Conn(t, databaseURL)
	execute(t, conn, dies)
	_, err := r.Attach(t.Context(), tomorrow, 1000, shortly)
	require.Error(t, err)
	execute(t, conn, `DROP EVENT TRIGGER die`)
	events := sightingsAt(tomorrow.From.Add(time.Hour), 3)
	claims := func() error {
		return s.Transact(t.Context(), func(tx domain.Tx) error {
			_, err := tx.Claim(t.Context(), group, events)
			return err
		})
	}
	require.Equal(t, "23514", stateOf(claims()), "it has left its constraint")

	require.ErrorIs(t, r.Clear(t.Context(), shortly), store.ErrNotKeeping)
	execute(t, conn, `ALTER TABLE processed_event_default ADD CONSTRAINT processed_not_mine CHECK (consumer_group <> '')`)
	next := keeping(t, databaseURL)
	commit := openClaim(t, s, []domain.Sighting{{EventID: uuid.New()}})
	require.ErrorIs(t, next.Clear(t.Context(), shortly), domain.ErrBusy, "a batch is open on it")
	commit()
	require.NoError(t, next.Clear(t.Context(), patience))
	require.NoError(t, claims())
	require.Equal(t, 1, value[int](t, conn, `SELECT count(*) FROM pg_constraint WHERE conname LIKE 'processed\_not%'`), "somebody else's stays")
	require.NoError(t, next.Clear(t.Context(), shortly), "nothing is left to be done")
}

func TestTheDatabaseTellsItsTime(t *testing.T) {
	t.Parallel()
	r := keeping(t, storetest.URL(t))
	before := time.Now()
	now, err := r.Now(t.Context())
	require.NoError(t, err)
	require.WithinRange(t, now, before.Add(-time.Second), time.Now().Add(time.Second))
	require.NoError(t, r.Resign())
	_, err = r.Now(t.Context())
	require.ErrorIs(t, err, store.ErrNotKeeping)
}
