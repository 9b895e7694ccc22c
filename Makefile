# Everything a developer types. `make` alone prints this manual; .ci/run calls the same targets.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  := -X main.version=$(VERSION)
GOFLAGS_BUILD := -trimpath -ldflags '$(LDFLAGS)'

# One `go test` at a time gets the whole machine; a test that needs longer than this hangs.
TEST_TIMEOUT ?= 10m
KAFKA_LIBS   := .cache/kafka/libs
LINT         := go tool -modfile=tools/go.mod golangci-lint

.PHONY: help
help: ## print this manual
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What run, demo and the tests need of the machine.
.PHONY: deps
deps:
	@scripts/install-deps.sh go cc postgres

##@ Try it (no Docker)

# `--kafka apache` needs the broker's jars.
JARS_IF_ASKED = $(if $(findstring apache,$(ARGS)),kafka-jars)

.PHONY: run
run: deps build $(JARS_IF_ASKED) ## the whole world on this machine, until Ctrl-C; installs what is missing first
	@exec bin/sandbox run $(ARGS)

.PHONY: demo
demo: deps build $(JARS_IF_ASKED) ## a finite run: duplicates in, one charge each out, checked against the provider's ledger
	@exec bin/sandbox run --once $(ARGS)

.PHONY: kafka
kafka: build kafka-jars ## a real Apache Kafka on loopback, until Ctrl-C (needs Java 17 and Maven)
	@exec bin/sandbox broker --apache $(ARGS)

##@ Build and test

.PHONY: build
build: ## bin/billing and bin/sandbox
	@scripts/build.sh $(GOFLAGS_BUILD) -o bin/ ./cmd/billing ./cmd/sandbox

.PHONY: test
test: deps build ## every test that needs no Docker, race detector on, real PostgreSQL
	bin/sandbox postgres -- go test -race -timeout $(TEST_TIMEOUT) ./...

.PHONY: test-kafka
test-kafka: deps build kafka-jars ## the tests that matter on a real Apache Kafka (needs Java 17 and Maven)
	BILLING_TEST_KAFKA=apache bin/sandbox postgres -- \
		go test -race -count=1 -p 1 -timeout $(TEST_TIMEOUT) -tags apache $$(scripts/apache-packages.sh)

DUPLICATES ?= 1000000

.PHONY: duplicates
duplicates: deps build ## DUPLICATES of events wherever their ids lie, in ranges or not: every one must be known
	bin/sandbox postgres -- go test -count=1 -v -timeout 60m ./internal/store/protocol \
		-run TestAFloodOfDuplicatesIsKnownWhereverItsIdLies -protocol.duplicates $(DUPLICATES)

TORTURE_MINUTES ?= 10
VICTIM          := .cache/torture/victim

# The victim, billing with a hook to die by, is nobody's to ship: it does not go to bin/.
.PHONY: torture
torture: deps build $(JARS_IF_ASKED) ## kills, stops, restarts, cuts for TORTURE_MINUTES from TORTURE_SEED, then the verdict (ARGS="--kafka apache")
	@scripts/build.sh $(GOFLAGS_BUILD) -o $(VICTIM) ./internal/sandbox/torture/victim
	@exec bin/sandbox torture --victim $(VICTIM) --minutes $(TORTURE_MINUTES) $(if $(TORTURE_SEED),--seed $(TORTURE_SEED)) $(ARGS)

.PHONY: kafka-deps
kafka-deps:
	@scripts/install-deps.sh java maven

.PHONY: kafka-jars
kafka-jars: $(KAFKA_LIBS)/.fetched ## fetch the Apache Kafka broker's jars from Maven Central

# Maven ends with a reset of the terminal's colours even where it is told to use none.
NO_ESCAPES := sed $$'s/\x1b\\[[0-9;]*m//g; /^$$/d'

# The folder is emptied first: two versions of a broker on one class path do not work.
$(KAFKA_LIBS)/.fetched: deploy/kafka/pom.xml | kafka-deps
	@echo 'fetching Apache Kafka from Maven Central…' >&2
	@rm -rf $(KAFKA_LIBS)
	@mvn -q -B -Dstyle.color=never -f $< dependency:copy-dependencies -DoutputDirectory='$(abspath $(KAFKA_LIBS))' 2>&1 | $(NO_ESCAPES)
	@touch $@

.PHONY: mutants
mutants: deps build ## take each guarantee out and expect its tests to go red (MUTANT=007,031 picks some)
	cd tools && ../bin/sandbox postgres -- go run ./mutants -only '$(MUTANT)'

.PHONY: lint
lint: ## golangci-lint, pinned in tools/go.mod
	$(LINT) run ./...
	$(LINT) run --build-tags apache $$(scripts/apache-packages.sh)
	cd tools && go tool golangci-lint run ./...

.PHONY: fmt
fmt: ## gofumpt and import groups
	$(LINT) fmt ./...

.PHONY: generate
generate: ## go generate
	go generate ./...

.PHONY: check
check: lint test compose-check clean-tree ## what must pass before a push

# Without a cache: the files lie outside that module, where go test does not see them change.
.PHONY: compose-check
compose-check: ## hold docker-compose.yml, .env.example, two documents and the mutants to what they promise
	cd tools && go test -count=1 ./...

.PHONY: clean-tree
clean-tree: ## fail when the working tree differs from the last commit
	@changed=$$(git status --porcelain); \
	if [[ -n "$$changed" ]]; then printf 'the working tree is not clean:\n%s\n' "$$changed" >&2; exit 1; fi

##@ Measure

BENCH_DOC := docs/benchmarks.md

.PHONY: bench
bench: deps build ## throughput, latency, memory beside their yardsticks, written into docs/benchmarks.md
	bin/sandbox bench --write $(BENCH_DOC) $(ARGS)
	cd tools && go run ./benchplot ../$(BENCH_DOC:.md=.json) ../$(BENCH_DOC:.md=.svg)

.PHONY: bench-growth
bench-growth: deps build ## throughput with 0, 1, 10 million rows in processed_event, and with 1, 6, 24 partitions
	bin/sandbox bench --growth --write $(BENCH_DOC) $(ARGS)

.PHONY: bench-retention
bench-retention: deps build ## ranges against a plain table, emptying a day under load, the statistics at 10 million rows
	bin/sandbox bench --retention --write $(BENCH_DOC) $(ARGS)

.PHONY: bench-go
bench-go: deps build ## the Go benchmarks of single functions
	bin/sandbox postgres -- go test -run '^$$' -bench . -benchmem ./...

.PHONY: profile
profile: deps ## where time, memory and waiting go in billing under load, into .cache/profiles
	@scripts/profile.sh .cache/profiles

##@ Docker

.PHONY: up
up: ## Kafka, PostgreSQL, provider and billing in containers; with orders: make up PROFILE=orders
	VERSION='$(VERSION)' scripts/compose.sh $(if $(PROFILE),--profile $(PROFILE)) up --build --detach

.PHONY: down
down: ## stop the containers; their data stays (docker volume rm to drop it)
	scripts/compose.sh --profile orders down --remove-orphans

##@ Make it yours

.PHONY: fork
fork: ## a renamed copy with a clean history: make fork MODULE=github.com/acme/refunds DIR=../refunds
	@scripts/fork.sh '$(MODULE)' '$(DIR)'

.PHONY: clean
clean: ## remove what was built and downloaded
	rm -rf bin .cache
