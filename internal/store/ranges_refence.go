package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// maxFences bounds how many fences are put up in a turn: claims of the default partition wait meanwhile.
const maxFences = 100

// selectFences lists the constraints of the default partition by their names.
const selectFences = `SELECT coalesce(string_agg(conname, ','), '') FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'c'`

// refence puts up the fences that ranges of ours lack, the latest ranges first: those that were attached before there
// were any, or by an instance of then. Such an instance also takes down those of others, in each turn.
func (r *Ranges) refence(ctx context.Context, rest rest, wait time.Duration) error {
	const what = "fence ranges off"
	leaves, err := r.leaves(ctx)
	if err != nil {
		return r.failed(what, err)
	}
	var list string
	if err := r.conn.QueryRowContext(ctx, selectFences, rest.table).Scan(&list); err != nil {
		return r.failed(what, err)
	}
	there := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		there[name] = true
	}
	var missing []string
	for i := len(leaves) - 1; i >= 0 && len(missing) < maxFences; i-- { // by name, and so by time
		if leaf := &leaves[i]; leaf.Ours && !leaf.Default && !there[fenceName(leaf.Table)] {
			missing = append(missing, addFence(leaf.Span))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return r.unhurried(ctx, what, wait, fmt.Sprintf(`ALTER TABLE %s %s`, rest.table, strings.Join(missing, ", ")))
}
