package admin

// Loopback is what CheckHealth makes of an address.
func Loopback(addr string) (string, error) { return loopback(addr) }
