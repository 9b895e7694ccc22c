package orders_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/billing/internal/sandbox/orders"
)

const header = "order_id,total_amount,currency\n"

func TestOrdersOfAFileAreTakenAsTheyAre(t *testing.T) {
	t.Parallel()

	file := "\ufeff" + header + "7,11.56,USD\n3,0.1,EUR\n12,100,JPY\n9,1.005,KWD\n8,999999999999999.99,USD\n"
	plan, err := orders.FromCSV(strings.NewReader(file), orders.Options{Duplicates: 0.5})
	require.NoError(t, err)

	e := plan.Expected()
	require.Equal(t, 10, e.Records)
	require.Equal(t, 5, e.Unique)
	require.Equal(t, 5, e.Duplicates())
	require.Equal(t, map[string]int64{"USD": 100000000000001155, "EUR": 10, "JPY": 100, "KWD": 1005}, e.Sums)

	var ids []int64

	amounts := map[int64]string{}

	for r := range plan.Records() {
		event := decode(t, r)
		if r.Kind == orders.Original {
			ids = append(ids, event.OrderID)
			amounts[event.OrderID] = string(r.Value[strings.Index(string(r.Value), `"totalAmount"`):])
		}
	}

	require.Equal(t, []int64{7, 3, 12, 9, 8}, ids)
	require.Equal(t, `"totalAmount":11.56,"currency":"USD"}`, amounts[7])
	require.Equal(t, `"totalAmount":0.10,"currency":"EUR"}`, amounts[3])
	require.Equal(t, `"totalAmount":100,"currency":"JPY"}`, amounts[12])
	require.Equal(t, `"totalAmount":1.005,"currency":"KWD"}`, amounts[9])
}

func TestDuplicatesOfAFileComeOnTop(t *testing.T) {
	t.Parallel()

	var file strings.Builder

	file.WriteString(header)

	for i := range 1834 {
		file.WriteString(strconv.Itoa(i+1) + ",10.08,USD\n")
	}

	plan, err := orders.FromCSV(strings.NewReader(file.String()), orders.Options{Duplicates: 0.2})
	require.NoError(t, err)

	e := plan.Expected()
	require.Equal(t, 1834, e.Unique)
	require.Equal(t, 2293, e.Records, "round(1834 / 0.8)")
	require.Equal(t, 230, e.Repeated)
	require.Equal(t, 229, e.Republished)
	require.Equal(t, map[string]int64{"USD": 1834 * 1008}, e.Sums)
}

func TestABadFileIsRefusedByLine(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ file, words string }{
		"empty":                        {"", "empty"},
		"no orders":                    {header, "no orders"},
		"other columns":                {"id,amount,currency\n1,1,EUR\n", "line 1: columns"},
		"another number of columns":    {"order_id,total_amount\n1,1\n", "line 1: columns"},
		"no header line":               {"1,1.00,EUR\n2,1.00,EUR\n", "the header line order_id,total_amount,currency is missing"},
		"a row too short":              {header + "1,1.00,EUR\n2,1.00\n", "line 3"},
		"an order id that is none":     {header + "1,1.00,EUR\nx,1.00,EUR\n", `line 3: order_id "x"`},
		"an order id of zero":          {header + "0,1.00,EUR\n", `line 2: order_id "0"`},
		"an order id beyond 2^63-1":    {header + "9223372036854775808,1.00,EUR\n", "line 2: order_id"},
		"an order given twice":         {header + "1,1.00,EUR\n2,1.00,EUR\n1,1.00,EUR\n", "line 4: order 1 is on line 2 already"},
		"an unknown currency":          {header + "1,1.00,EURO\n", `line 2: total_amount "1.00" EURO: currency "EURO"`},
		"a fraction of a cent":         {header + "1,1.001,EUR\n", "line 2: total_amount \"1.001\" EUR: more than the 2 fraction digits"},
		"a fraction of a yen":          {header + "1,1.0,JPY\n", "more than the 0 fraction digits"},
		"nothing":                      {header + "1,0.00,EUR\n", "not above zero"},
		"less than nothing":            {header + "1,-1.00,EUR\n", "not a plain decimal number"},
		"scientific notation":          {header + "1,1e3,EUR\n", "not a plain decimal number"},
		"a comma for a point":          {header + "1,\"1,50\",EUR\n", "not a plain decimal number"},
		"no digits before the point":   {header + "1,.50,EUR\n", "not a plain decimal number"},
		"no digits behind the point":   {header + "1,1.,EUR\n", "not a plain decimal number"},
		"10^15":                        {header + "1,1000000000000000,EUR\n", "10^15 or more"},
		"a sum beyond 2^63-1":          {header + manyLargeOrders(), "sum of all KWD amounts"},
		"a quote that is never closed": {header + "1,\"1.00,EUR\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := orders.FromCSV(strings.NewReader(tt.file), orders.Options{})
			require.ErrorContains(t, err, tt.words)
		})
	}
}

// manyLargeOrders add up to 10^19 fils.
func manyLargeOrders() string {
	var rows strings.Builder
	for i := range 10 {
		rows.WriteString(strconv.Itoa(i+1) + ",999999999999999.999,KWD\n")
	}

	return rows.String()
}
