package domain

// literal is what the look of a decimal tells before any arithmetic.
type literal struct {
	negative bool
	zero     bool // all digits of the coefficient are zero
	scale    int  // the exponent part, held to ±(maxScale+1)
}

// scanDecimal checks a decimal against JSON's number grammar
//
//	-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
//
// in one pass without arithmetic on it. The error is an [*InvalidError] with
// [ReasonAmount].
func scanDecimal(s string) (literal, *InvalidError) {
	if len(s) > MaxAmountBytes {
		return literal{}, invalid(ReasonAmount, fieldTotalAmount, "longer than %d bytes", MaxAmountBytes)
	}
	lit := literal{zero: true}
	rest := s
	if rest != "" && rest[0] == '-' {
		lit.negative, rest = true, rest[1:]
	}
	whole, rest := cutDigits(rest)
	ok := whole != "" && (len(whole) == 1 || whole[0] != '0')
	lit.zero = allZero(whole)
	if rest != "" && rest[0] == '.' {
		var fraction string
		fraction, rest = cutDigits(rest[1:])
		ok = ok && fraction != ""
		lit.zero = lit.zero && allZero(fraction)
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		var valid bool
		lit.scale, rest, valid = scanScale(rest[1:])
		ok = ok && valid
	}
	if !ok || rest != "" {
		return literal{}, invalid(ReasonAmount, fieldTotalAmount, "not a decimal number as JSON writes it")
	}
	return lit, nil
}

// scanScale reads the exponent part behind its letter. A value beyond maxScale
// stops growing there: it is refused by its size, never computed.
func scanScale(s string) (scale int, rest string, ok bool) {
	negative := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		negative, s = s[0] == '-', s[1:]
	}
	digits, rest := cutDigits(s)
	for _, digit := range []byte(digits) {
		scale = min(scale*10+int(digit-'0'), maxScale+1)
	}
	if negative {
		scale = -scale
	}
	return scale, rest, digits != ""
}

// cutDigits splits s behind its leading ASCII digits.
func cutDigits(s string) (digits, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}

func allZero(digits string) bool {
	for _, digit := range []byte(digits) {
		if digit != '0' {
			return false
		}
	}
	return true
}
