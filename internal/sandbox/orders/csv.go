package orders

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxCSVOrders bounds a file: its orders are held in memory, about 100 bytes each.
const MaxCSVOrders = 1_000_000

// byteOrderMark is what spreadsheets put before the first column.
const byteOrderMark = "\ufeff"

// csvHeader is the first line of a file.
var csvHeader = []string{"order_id", "total_amount", "currency"} //nolint:gochecknoglobals // a constant list

// FromCSV plans the orders of a file with the columns order_id, total_amount and currency, in the file's order. All N of them are
// unique, and the rest comes on top: round(N / (1 − Duplicates − Conflicts − Invalid)) records. An error names the line.
func FromCSV(file io.Reader, options Options) (*Plan, error) {
	options = withDefaults(options)
	if err := validateOptions(options); err != nil {
		return nil, fmt.Errorf("plan of orders: %w", err)
	}

	list, err := readCSV(file)
	if err != nil {
		return nil, fmt.Errorf("orders file: %w", err)
	}

	records := int(math.Round(float64(len(list)) / (1 - options.Duplicates - options.Conflicts - options.Invalid)))
	more := moreOf(records, options)
	more.duplicates = max(0, records-len(list)-more.conflicts-more.invalid)

	return newPlan(options, len(list), more, func(i int) order { return list[i] })
}

func readCSV(file io.Reader) ([]order, error) {
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = len(csvHeader)
	reader.ReuseRecord = true

	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("empty")
	}

	if err != nil && header == nil {
		return nil, err
	}

	header[0] = strings.TrimPrefix(header[0], byteOrderMark)
	if !slices.Equal(header, csvHeader) {
		return nil, headerError(header)
	}

	var list []order

	lines := map[int64]int{} // of each order id

	for {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			return nil, err // names the line
		}

		line, _ := reader.FieldPos(0)

		o, err := parseOrder(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}

		if first, known := lines[o.id]; known {
			return nil, fmt.Errorf("line %d: order %d is on line %d already", line, o.id, first)
		}

		if len(list) == MaxCSVOrders {
			return nil, fmt.Errorf("line %d: more than %d orders", line, MaxCSVOrders)
		}

		lines[o.id] = line
		list = append(list, o)
	}

	if len(list) == 0 {
		return nil, errors.New("no orders")
	}

	return list, nil
}

// headerError says what is wrong with a first line: an order is none.
func headerError(line []string) error {
	if _, err := strconv.ParseInt(line[0], 10, 64); err == nil {
		return fmt.Errorf("line 1: the header line %s is missing", strings.Join(csvHeader, ","))
	}

	return fmt.Errorf("line 1: columns %q instead of %q", line, csvHeader)
}

func parseOrder(fields []string) (order, error) {
	id, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || id < 1 {
		return order{}, fmt.Errorf("order_id %q: not an integer between 1 and 2^63-1", fields[0])
	}

	amount, err := parseAmount(fields[1], fields[2])
	if err != nil {
		return order{}, fmt.Errorf("total_amount %q %s: %w", fields[1], fields[2], err)
	}

	return order{id: id, amount: amount}, nil
}
