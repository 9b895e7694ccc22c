package domain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

func BenchmarkDecode(b *testing.B) {
	record := &domain.Record{Value: []byte(goodValue), Headers: []domain.Header{
		{Key: "traceparent", Value: []byte("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")},
	}}
	b.ReportAllocs()
	for b.Loop() {
		event, err := domain.Decoder{}.Decode(record)
		if err != nil {
			b.Fatal(err)
		}
		_ = event.Fingerprint()
	}
}

// BenchmarkDecodeHostile shows that no value of the largest size burns more than
// its bytes are worth.
func BenchmarkDecodeHostile(b *testing.B) {
	for name, value := range hostileValues() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(value)))
			for b.Loop() {
				_, _ = domain.Decoder{}.Decode(&domain.Record{Value: value})
			}
		})
	}
}

// hostileValues are values of nearly the largest size that aim at the weak
// points of a JSON reader: depth, names, numbers, escapes.
func hostileValues() map[string][]byte {
	const size = domain.MaxValueBytes
	names := func(format string) string {
		var object strings.Builder
		for i := 0; object.Len() < size-64; i++ {
			fmt.Fprintf(&object, format, i)
		}
		return object.String()
	}
	longName := strings.Repeat("n", 90)
	values := map[string]string{
		"brackets":           strings.Repeat("[", size),
		"nested arrays":      `{"x":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`,
		"nested objects":     strings.Repeat(`{"`+longName+`":`, 9_900) + "1" + strings.Repeat("}", 9_900),
		"broken at the core": strings.Repeat(`{"`+longName+`":`, 9_900),
		"nested duplicates":  strings.Repeat(`{"`+longName+`":`, 9_900) + `{"a":1,"a":1}` + strings.Repeat("}", 9_900),
		"many names":         `{` + names(`"k%d":0,`) + `"x":0}`,
		"many empty objects": `{"x":[` + names(`{"a":%d},`) + `0]}`,
		"escaped names":      `{` + names(`"\u006b%d":0,`) + `"x":0}`,
		"long number":        `{"totalAmount":1` + strings.Repeat("0", size-64) + `}`,
		"long order id":      strings.Replace(goodValue, `"orderId":42`, `"orderId":`+strings.Repeat("9", size-1024), 1),
		"long amount":        strings.Replace(goodValue, `10.50`, strings.Repeat("9", size-1024), 1),
		"long fraction":      strings.Replace(goodValue, `10.50`, `10.`+strings.Repeat("0", size-1024), 1),
		"long time":          strings.Replace(goodValue, `05.678Z`, `05.`+strings.Repeat("6", size-1024)+`Z`, 1),
		"long currency":      strings.Replace(goodValue, `EUR`, strings.Repeat("E", size-1024), 1),
		"long event id":      strings.Replace(goodValue, goodID, strings.Repeat("0", size-1024), 1),
		"escapes":            `{"eventType":"` + strings.Repeat(`\u0041`, (size-64)/6) + `"}`,
		"white space":        strings.Repeat(" ", size-2) + `{}`,
		"unclosed string":    `{"` + strings.Repeat("a", size-64),
	}
	hostile := make(map[string][]byte, len(values))
	for name, value := range values {
		if len(value) > size {
			panic(name + " is refused by its size alone")
		}
		hostile[name] = []byte(value)
	}
	return hostile
}

// Memory is counted over the whole process, so this test does not run in parallel.
func TestDecodeOfHostileValuesIsBounded(t *testing.T) { //nolint:paralleltest // see above
	for name, value := range hostileValues() {
		allocated := allocatedBytes(func() {
			_, err := domain.Decoder{}.Decode(&domain.Record{Value: value})
			require.Error(t, err, name)
		})
		require.Less(t, allocated, uint64(40*domain.MaxValueBytes), name)
	}
}
