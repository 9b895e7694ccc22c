package kafka

import (
	"slices"

	"example.com/billing/internal/domain"
)

// carrier lets an OpenTelemetry propagator read and write the trace context in a
// record's headers. Of a repeated header the last one counts, as for every header.
type carrier struct{ headers *[]domain.Header }

// Get returns the value of the last header of that name, or "".
func (c carrier) Get(key string) string {
	for _, header := range slices.Backward(*c.headers) {
		if header.Key == key {
			return string(header.Value)
		}
	}
	return ""
}

// Set replaces every header of that name by one.
func (c carrier) Set(key, value string) {
	others := slices.DeleteFunc(slices.Clone(*c.headers), func(h domain.Header) bool { return h.Key == key })
	others = append(others, domain.Header{Key: key, Value: []byte(value)})
	*c.headers = others
}

// Keys returns the names of all headers, in order.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(*c.headers))
	for _, header := range *c.headers {
		keys = append(keys, header.Key)
	}
	return keys
}
