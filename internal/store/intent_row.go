package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/billing/internal/domain"
)

// chargeIntent is a row of charge_intent as it is read.
type chargeIntent struct {
	EventID         uuid.UUID `gorm:"primaryKey"`
	OrderID         int64
	RequestHash     []byte
	Fingerprint     []byte
	State           string
	Claimed         bool
	MaybeSent       bool
	Token           uuid.UUID
	Owner           string
	LeaseUntil      *time.Time
	DueAt           time.Time
	CreatedAt       time.Time
	FirstAttemptAt  *time.Time
	ReplayedAt      *time.Time
	Attempts        int
	Answer          *string
	LastError       string
	ConsumerGroup   string
	SourceTopic     string
	SourcePartition int32
	SourceOffset    int64
	Traceparent     string
	Tracestate      string
	Record          []byte
	RecordKey       []byte
	RecordHeaders   []byte
	RecordTimestamp time.Time
}

func (chargeIntent) TableName() string { return "charge_intent" }

// intent returns what the row says.
func (c *chargeIntent) intent() (*domain.Intent, error) {
	headers, err := domain.DecodeHeaders(c.RecordHeaders)
	if err != nil {
		return nil, fmt.Errorf("intent %s: %w", c.EventID, err)
	}
	answer, err := decodeAnswer(c.Answer)
	if err != nil {
		return nil, fmt.Errorf("intent %s: %w", c.EventID, err)
	}
	return &domain.Intent{
		Was:     domain.Version{Token: c.Token, State: domain.IntentState(c.State), Claimed: c.Claimed},
		EventID: c.EventID, OrderID: c.OrderID,
		RequestHash: [32]byte(c.RequestHash), Fingerprint: domain.Fingerprint(c.Fingerprint),
		State: domain.IntentState(c.State), Claimed: c.Claimed, MaybeSent: c.MaybeSent,
		Token: c.Token, Owner: c.Owner, LeaseUntil: orZero(c.LeaseUntil), DueAt: c.DueAt,
		CreatedAt: c.CreatedAt, FirstAttemptAt: orZero(c.FirstAttemptAt), ReplayedAt: orZero(c.ReplayedAt),
		Attempts: c.Attempts, Answer: answer, LastError: c.LastError, Group: c.ConsumerGroup,
		Record: domain.Record{
			Coordinates: domain.Coordinates{Topic: c.SourceTopic, Partition: c.SourcePartition, Offset: c.SourceOffset},
			Timestamp:   c.RecordTimestamp, Key: c.RecordKey, Value: c.Record, Headers: headers,
		},
		TraceParent: c.Traceparent, TraceState: c.Tracestate,
	}, nil
}

// storedAnswer is the stored form of a definite answer.
type storedAnswer struct {
	Kind             string `json:"kind"`
	Status           int    `json:"status"`
	ProviderChargeID string `json:"provider_charge_id,omitempty"`
	DeclineCode      string `json:"decline_code,omitempty"`
	Posts            int    `json:"posts"`
	MaybeSent        bool   `json:"maybe_sent"`
	Detail           string `json:"detail,omitempty"`
	Found            bool   `json:"found,omitempty"`
}

func encodeAnswer(a *domain.Answer) (*string, error) {
	if a == nil {
		return nil, nil
	}
	b, err := json.Marshal(storedAnswer{
		Kind: a.Kind.String(), Status: a.Status, ProviderChargeID: a.ProviderChargeID, DeclineCode: a.DeclineCode,
		Posts: a.Posts, MaybeSent: a.MaybeSent, Detail: a.Detail, Found: a.Found,
	})
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	text := string(b)
	return &text, nil
}

func decodeAnswer(text *string) (*domain.Answer, error) {
	if text == nil {
		return nil, nil
	}
	var s storedAnswer
	if err := json.Unmarshal([]byte(*text), &s); err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	kind, err := domain.ParseAnswerKind(s.Kind)
	if err != nil {
		return nil, fmt.Errorf("decode answer: %w", err)
	}
	return &domain.Answer{
		Kind: kind, Status: s.Status, ProviderChargeID: s.ProviderChargeID, DeclineCode: s.DeclineCode,
		Posts: s.Posts, MaybeSent: s.MaybeSent, Detail: s.Detail, Found: s.Found,
	}, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
