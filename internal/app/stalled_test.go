package app_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"example.com/billing/internal/payment/paymenttest"
)

// Another instance was stopped right between two rows of a COPY: it can end nothing itself.
func TestASessionWhoseClientStandsStillIsEndedByAnotherInstance(t *testing.T) {
	t.Parallel()
	w := setup(t, 1, paymenttest.Faults{})
	one := w.start(nil)
	config, err := pgx.ParseConfig(w.url)
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = "billing-side" // which is given the least time
	stopped, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stopped.Close(context.WithoutCancel(t.Context())) }) // it is closed already, unless the test fails
	rows, more := io.Pipe()
	t.Cleanup(func() { require.NoError(t, more.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = stopped.PgConn().CopyFrom(ctx, rows, `COPY charge FROM STDIN`)
	told, ok := errors.AsType[*pgconn.PgError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, "57P01", told.Code, err)
	w.eventually("it is told", func() bool { return strings.Contains(one.Logs.String(), "stood still in the midst of a COPY") })
}
