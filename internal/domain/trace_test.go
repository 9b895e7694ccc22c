package domain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/domain"
)

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
	trace00  = "00-" + traceID + "-" + parentID + "-01"
)

func TestTraceContextIsTakenInItsW3CFormOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ parent, want string }{
		"version 00":                       {trace00, trace00},
		"not sampled":                      {"00-" + traceID + "-" + parentID + "-00", "00-" + traceID + "-" + parentID + "-00"},
		"unknown flags":                    {"00-" + traceID + "-" + parentID + "-ff", "00-" + traceID + "-" + parentID + "-ff"},
		"a later version":                  {"01" + trace00[2:], "01" + trace00[2:]},
		"a later version, longer":          {"cc" + trace00[2:] + "-what-comes", "cc" + trace00[2:]},
		"a later version, no dash":         {"cc" + trace00[2:] + ".what-comes", ""},
		"version ff":                       {"ff" + trace00[2:], ""},
		"version 00, longer":               {trace00 + "-more", ""},
		"upper case":                       {strings.ToUpper(trace00), ""},
		"no hex in the version":            {"0x" + trace00[2:], ""},
		"no hex in the trace id":           {"00-" + "g" + traceID[1:] + "-" + parentID + "-01", ""},
		"no hex in the parent id":          {"00-" + traceID + "-" + "g" + parentID[1:] + "-01", ""},
		"no hex in the flags":              {"00-" + traceID + "-" + parentID + "-0g", ""},
		"zero trace id":                    {"00-" + strings.Repeat("0", 32) + "-" + parentID + "-01", ""},
		"zero parent id":                   {"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", ""},
		"wrong first dash":                 {"00_" + trace00[3:], ""},
		"wrong second dash":                {trace00[:35] + "_" + trace00[36:], ""},
		"wrong third dash":                 {trace00[:52] + "_" + trace00[53:], ""},
		"a byte short":                     {trace00[:54], ""},
		"empty":                            {"", ""},
		"white space around":               {" " + trace00 + " ", ""},
		"NUL":                              {strings.Repeat("\x00", 55), ""},
		"invalid UTF-8":                    {strings.Repeat("\xff", 55), ""},
		"a megabyte of a version to come":  {"01" + trace00[2:] + "-" + strings.Repeat("x", 1<<20), "01" + trace00[2:]},
		"a megabyte that is of no version": {strings.Repeat("0", 1<<20), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := &domain.Record{Headers: []domain.Header{
				{Key: "traceparent", Value: []byte(tc.parent)},
				{Key: "tracestate", Value: []byte("vendor=1")},
			}}
			parent, state := record.TraceContext()
			require.Equal(t, tc.want, parent)
			require.Equal(t, tc.want != "", state != "", "no tracestate without a traceparent")
		})
	}
}

func TestTraceStateIsBoundedPrintableText(t *testing.T) {
	t.Parallel()
	full := "a=" + strings.Repeat("x", 510)
	for name, tc := range map[string]struct{ state, want string }{
		"one vendor":      {"congo=t61rcWkgMzE", "congo=t61rcWkgMzE"},
		"two vendors":     {"rojo=00f067aa0ba902b7, congo=t61 rc", "rojo=00f067aa0ba902b7, congo=t61 rc"},
		"512 bytes":       {full, full},
		"513 bytes":       {full + "x", ""},
		"NUL":             {"a=\x00", ""},
		"a line break":    {"a=1\r\nX-Injected: 1", ""},
		"beyond ASCII":    {"a=é", ""},
		"invalid UTF-8":   {"a=\xff", ""},
		"a tab":           {"a=\t", ""},
		"no value at all": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			record := &domain.Record{Headers: []domain.Header{
				{Key: "tracestate", Value: []byte(tc.state)},
				{Key: "traceparent", Value: []byte(trace00)},
			}}
			parent, state := record.TraceContext()
			require.Equal(t, trace00, parent, "a bad tracestate leaves the traceparent alone")
			require.Equal(t, tc.want, state)
		})
	}
}

func TestNoHeadersAreNoTrace(t *testing.T) {
	t.Parallel()
	parent, state := (&domain.Record{}).TraceContext()
	require.Empty(t, parent)
	require.Empty(t, state)
}
