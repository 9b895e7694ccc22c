package app

import "time"

// Settings is the environment of billing serve. Durations are written as Go
// writes them: 5s, 168h.
type Settings struct {
	Kafka    KafkaSettings
	Database DatabaseSettings
	Payment  PaymentSettings
	Flow     FlowSettings
	Admin    AdminSettings
	Log      LogSettings

	ShutdownTimeout time.Duration `env:"SHUTDOWN_TIMEOUT" envDefault:"30s"`
}

// KafkaSettings say what is consumed, from where, and as whom.
type KafkaSettings struct {
	Brokers        []string      `env:"KAFKA_BROKERS,required,notEmpty"`
	Topic          string        `env:"KAFKA_TOPIC" envDefault:"orders.confirmed"`
	GroupID        string        `env:"KAFKA_GROUP_ID" envDefault:"billing-order-confirmed"`
	DLQTopic       string        `env:"KAFKA_DLQ_TOPIC" envDefault:"orders.confirmed.dlq"`
	EventsTopic    string        `env:"KAFKA_EVENTS_TOPIC" envDefault:"billing.charges"`
	CreateTopics   bool          `env:"KAFKA_CREATE_TOPICS" envDefault:"true"`
	SessionTimeout time.Duration `env:"KAFKA_SESSION_TIMEOUT" envDefault:"10s"`
	Protocol       string        `env:"KAFKA_SECURITY_PROTOCOL" envDefault:"plaintext"`
	SASLMechanism  string        `env:"KAFKA_SASL_MECHANISM"`
	SASLUsername   string        `env:"KAFKA_SASL_USERNAME"`
	SASLPassword   string        `env:"KAFKA_SASL_PASSWORD"`
	CAFile         string        `env:"KAFKA_CA_FILE"`
	CertFile       string        `env:"KAFKA_CERT_FILE"`
	KeyFile        string        `env:"KAFKA_KEY_FILE"`
}

// DatabaseSettings say where PostgreSQL is.
type DatabaseSettings struct {
	URL            string `env:"DATABASE_URL,required,notEmpty"`
	MaxConns       int    `env:"DATABASE_MAX_CONNS" envDefault:"20"`
	MigrateOnStart bool   `env:"MIGRATE_ON_START" envDefault:"true"`
}

// PaymentSettings say who takes the money.
type PaymentSettings struct {
	URL     string        `env:"PAYMENT_URL,required,notEmpty"`
	APIKey  string        `env:"PAYMENT_API_KEY"`
	Timeout time.Duration `env:"PAYMENT_TIMEOUT" envDefault:"5s"` // one attempt
	Lookup  bool          `env:"PAYMENT_LOOKUP" envDefault:"false"`
	KeyTTL  time.Duration `env:"PAYMENT_KEY_TTL" envDefault:"24h"` // how long the provider remembers a key
}

// FlowSettings bound the flow.
type FlowSettings struct {
	ChargeBudget    time.Duration `env:"CHARGE_BUDGET" envDefault:"12s"`
	RetryHorizon    time.Duration `env:"RETRY_HORIZON" envDefault:"20h"`
	BatchMax        int           `env:"BATCH_MAX" envDefault:"256"`
	MaxInFlight     int           `env:"MAX_IN_FLIGHT" envDefault:"1024"`
	MaxTransactions int           `env:"MAX_TRANSACTIONS" envDefault:"12"`
	DedupRetention  time.Duration `env:"DEDUP_RETENTION" envDefault:"168h"`
	RetentionMode   string        `env:"RETENTION_MODE" envDefault:"partition"`
	RetentionRange  string        `env:"RETENTION_RANGE" envDefault:"day"`
	OffsetStore     string        `env:"OFFSET_STORE" envDefault:"kafka"`
	RequireUUIDv7   bool          `env:"REQUIRE_UUID_V7" envDefault:"false"`
}

// AdminSettings say who may look in.
type AdminSettings struct {
	Addr      string `env:"ADMIN_ADDR" envDefault:":8080"`
	Token     string `env:"ADMIN_TOKEN"`      // operator
	ReadToken string `env:"ADMIN_READ_TOKEN"` // read only
	Insecure  bool   `env:"ADMIN_INSECURE" envDefault:"false"`
}

// LogSettings say how much is logged, and how.
type LogSettings struct {
	Level  string `env:"LOG_LEVEL" envDefault:"info"`
	Format string `env:"LOG_FORMAT" envDefault:"json"`
}

// secretVariables may also be given as NAME_FILE, the path of a file that holds
// the value.
func secretVariables() []string {
	return []string{"DATABASE_URL", "PAYMENT_API_KEY", "KAFKA_SASL_PASSWORD", "ADMIN_TOKEN", "ADMIN_READ_TOKEN"}
}
