package retention

import (
	"errors"
	"fmt"
	"slices"
)

// maxTold bounds the errors that a turn tells: what is the matter with one range is as a
// rule the matter with all of them, and there may be a thousand.
const maxTold = 5

// joined returns the errors as one: the first of them, and how many more there are.
func joined(errs []error) error {
	if more := len(errs) - maxTold; more > 0 {
		errs = append(slices.Clip(errs[:maxTold]), fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
