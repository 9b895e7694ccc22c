package domain

import (
	"crypto/sha256"
	"encoding/binary"
)

// fingerprintVersion is the first byte that is digested. Fingerprints are stored
// and compared across deploys: another canonical form needs another version, and
// code that still knows this one.
const fingerprintVersion = 1

// Fingerprint digests the event's meaning with SHA-256. Digested are, in order
// and big-endian: the version byte; eventType; orderId and customerId (8 bytes
// each); the amount in minor units (8 bytes); currency; occurredAt as the UTC
// seconds since 1970 (8 bytes) and nanoseconds (4 bytes). Texts are led by their
// length in one byte, so that no two events share a form. The id is not part of
// it: a fingerprint tells two payloads of one id apart.
func (e *Event) Fingerprint() Fingerprint {
	form := make([]byte, 0, 80)
	form = append(form, fingerprintVersion)
	form = appendText(form, EventTypeOrderConfirmed)
	form = binary.BigEndian.AppendUint64(form, uint64(e.OrderID))
	form = binary.BigEndian.AppendUint64(form, uint64(e.CustomerID))
	form = binary.BigEndian.AppendUint64(form, e.Total.Minor())
	form = appendText(form, e.Total.Currency().Code())
	form = binary.BigEndian.AppendUint64(form, uint64(e.OccurredAt.Unix()))
	form = binary.BigEndian.AppendUint32(form, uint32(e.OccurredAt.Nanosecond()))
	return sha256.Sum256(form)
}

// appendText appends a text of at most 255 bytes behind its length.
func appendText(form []byte, text string) []byte {
	return append(append(form, byte(len(text))), text...)
}
