//go:build !apache

package kafka_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/billing/internal/domain"
)

// BenchmarkConsume tells what the way from the broker to the Biller and back to the
// committed offset costs per record, with a Biller that takes no time and
// with one whose batches take as long as a provider's answers. A tenth of the records
// repeats an event.
func BenchmarkConsume(b *testing.B) {
	const records, partitions = 60_000, 6
	for _, took := range []time.Duration{0, 50 * time.Millisecond} {
		b.Run("batch takes "+took.String(), func(b *testing.B) {
			topic := setup(b, brokersUnderTest(b), partitions, nil)
			for from := 0; from < records; from += 1000 {
				batch := make([]*kgo.Record, 1000)
				for i := range batch {
					n := from + i/10*10 + min(i%10, 8)
					batch[i] = &kgo.Record{
						Partition: int32((from + i) % partitions), Key: []byte(strconv.Itoa(from + i)),
						Value: confirmed(n, 1+n),
					}
				}
				topic.produce(b, batch...)
			}
			batches := 0
			b.ReportAllocs()
			b.ResetTimer()
			for round := 0; b.Loop(); round++ {
				done := make(chan int, records)
				book := newLedger(func(_ context.Context, records []domain.Record) error {
					time.Sleep(took)
					done <- len(records)
					return nil
				})
				cfg := topic.config()
				cfg.GroupID += strconv.Itoa(round) // from the beginning, every time
				r := start(b, cfg, book)
				for left := records; left > 0; {
					left -= <-done
					batches++
				}
				require.NoError(b, r.stop(b))
			}
			b.ReportMetric(float64(records*b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(records*b.N)/float64(batches), "records/batch")
		})
	}
}
