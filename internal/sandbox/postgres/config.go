package postgres

import (
	"io"
	"maps"
	"slices"
	"strconv"
)

// Options are the settings of a server; the zero value is ready for tests.
type Options struct {
	// Dir keeps the data over several runs; empty: a temporary folder, removed by Stop.
	Dir string
	// Bin is the folder of initdb and postgres; empty: it is searched for.
	Bin string
	// Port on 127.0.0.1; 0: a free one.
	Port int
	// Durable flushes every commit to disk, as a production server does. Otherwise the data survives the death of the server, not of the machine.
	Durable bool
	// Params are further settings of postgresql.conf; they win over the package's own.
	Params map[string]string
	// Log receives the server's log; nil discards it. The last lines are part of the errors either way.
	Log io.Writer
}

// maxConnections is enough for the pools of many tests at once.
const maxConnections = 300

// arguments are the command line of the server.
func arguments(o Options, data, sockets string, port int) []string {
	params := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": sockets,
		"max_connections":         strconv.Itoa(maxConnections),
		"timezone":                "UTC",
		"log_timezone":            "UTC",
	}
	if !o.Durable {
		// synchronous_commit stays on: a commit must survive a killed server, which many tests play.
		params["fsync"], params["full_page_writes"] = "off", "off"
	}

	maps.Copy(params, o.Params)

	args := []string{"-D", data}
	for _, key := range slices.Sorted(maps.Keys(params)) {
		args = append(args, "-c", key+"="+params[key])
	}

	return args
}
