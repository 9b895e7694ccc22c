package app_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/payment/paymenttest"
)

func TestEachEventIsPostedOnceThoughAFifthOfTheRecordsAreDuplicates(t *testing.T) {
	t.Parallel()
	inEveryStore(t, func(t *testing.T, offsets string) {
		t.Helper()
		for name, ignoreKeys := range map[string]bool{"a provider that honours keys": false, "a provider that ignores keys": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				const unique, partitions = 2000, 6
				w := setupIn(t, offsets, partitions, paymenttest.Faults{IgnoreKeys: ignoreKeys})
				var records []*kgo.Record
				for n := range int64(unique) {
					o := newOrder(n + 1)
					at := int32(n % partitions)
					records = append(records, w.record(at, []byte(o.json())))
					switch n % 8 {
					case 0: // the same bytes again, right away
						records = append(records, w.record(at, []byte(o.json())))
					case 1: // in another partition
						records = append(records, w.record((at+1)%partitions, []byte(o.json())))
					}
				}
				w.produce(records...)
				one, two := w.start(patient(nil)), w.start(patient(nil))
				w.settled()

				ledger := w.provider.Ledger()
				require.EqualValues(t, unique, ledger.Posts)
				require.EqualValues(t, unique, ledger.Captures)
				require.Zero(t, ledger.DoubleCharges)
				n := one.stats()
				require.EqualValues(t, len(records), n.Received-n.Duplicates.Redelivered) // again after a lost session only
				require.EqualValues(t, unique, n.Processed)
				require.EqualValues(t, unique, n.Captured)
				require.EqualValues(t, unique, w.count(`SELECT count(*) FROM processed_event`))
				require.EqualValues(t, unique, w.count(`SELECT count(*) FROM charge WHERE status = 'captured' AND amount = 10.50 AND attempts = 1`))
				require.Equal(t, http.StatusOK, two.get("/readyz", nil))
				require.Equal(t, http.StatusOK, two.get("/metrics", nil))
			})
		}
	})
}
