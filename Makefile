# The commands of the project. `make help` lists them.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

GOFUMPT     := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The number of test binaries that run at the same time. Each starts its own Redis servers.
PARALLEL ?= 2

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: build ## Start a node to play with; it needs no Redis and stores nothing
	@bin/parlor dev

.PHONY: build
build: ## Build bin/parlor
	@go build -o bin/parlor ./cmd/parlor

.PHONY: test
test: servers ## Run all tests with the race detector, on real Redis servers
	go test -race -count=1 -p $(PARALLEL) -timeout 10m ./...

.PHONY: check
check: ## Check format, vet, staticcheck, architecture rules (line width included) and generated files
	@unformatted="$$($(GOFUMPT) -l .)"; test -z "$$unformatted" || { echo "not formatted (run make format):"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	go test -count=1 ./tests/archtest

.PHONY: format
format: ## Format the sources
	$(GOFUMPT) -w .

.PHONY: generate
generate: ## Write the generated files
	go generate ./...
	go run ./cmd/parlor config env --markdown > docs/settings.md.new && mv docs/settings.md.new docs/settings.md
	go run ./cmd/parlor config env > deploy/.env.example.new && mv deploy/.env.example.new deploy/.env.example

.PHONY: bench
bench: servers ## Measure requests, saves, scripts, memory, deliveries and idle connections
	go run ./tests/bench
	go run ./tests/cost -time
	go test ./realtime -run '^$$' -bench . -benchtime 1x

.PHONY: hostile
hostile: servers ## Let one guest do its worst for a minute while others play for money
	go test ./tests/hostile -count=1 -v -timeout 10m -attack 60s -baseline 20s -ratio 1.5

.PHONY: cost
cost: servers valgrind ## Count what each call costs the store, and fail above a ceiling of docs/cost.md
	go run ./tests/cost

.PHONY: valgrind
valgrind: ## Install valgrind if it is missing (needs root)
	@command -v valgrind >/dev/null && command -v callgrind_control >/dev/null || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: valgrind; install it" >&2; exit 1; }; \
		echo "installing valgrind"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends valgrind >/dev/null; }

.PHONY: servers
servers: ## Install redis-server and haproxy if they are missing (needs root)
	@missing="$$(for s in redis-server haproxy; do command -v $$s >/dev/null || test -x /usr/sbin/$$s || echo $$s; done)"; \
	test -z "$$missing" || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: $$missing; install Redis 7.0 and HAProxy 2.6 or newer" >&2; exit 1; }; \
		echo "installing $$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }
