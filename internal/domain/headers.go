package domain

import (
	"encoding/json"
	"fmt"
)

// storedHeader is the stored form of a header. encoding/json writes bytes as
// base64 and nil as null, so that any bytes survive and nil differs from empty.
type storedHeader struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// EncodeHeaders returns the stored form of a record's headers: a JSON array of
// {"key": base64, "value": base64 or null} in their order. Keys and values may
// hold any bytes. No headers are nil.
func EncodeHeaders(headers []Header) ([]byte, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	stored := make([]storedHeader, len(headers))
	for i, header := range headers {
		stored[i] = storedHeader{Key: []byte(header.Key), Value: header.Value}
	}
	encoded, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode headers: %w", err)
	}
	return encoded, nil
}

// DecodeHeaders is the inverse of [EncodeHeaders]: no bytes are no headers.
func DecodeHeaders(encoded []byte) ([]Header, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	var stored []storedHeader
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return nil, fmt.Errorf("decode headers: %w", err)
	}
	headers := make([]Header, len(stored))
	for i, header := range stored {
		headers[i] = Header{Key: string(header.Key), Value: header.Value}
	}
	return headers, nil
}
