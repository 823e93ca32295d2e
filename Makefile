# The commands of the house. `make help` lists them.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

GOFUMPT     := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# So many test binaries at a time: each starts its own Redis servers.
PARALLEL ?= 2

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: build ## Start a node to play with: nothing to install, nothing kept
	@bin/parlor dev

.PHONY: build
build: ## Build bin/parlor
	@go build -o bin/parlor ./cmd/parlor

.PHONY: test
test: servers ## Run every test with the race detector, on real Redis servers
	go test -race -count=1 -p $(PARALLEL) -timeout 10m ./...

.PHONY: check
check: ## Format, vet, staticcheck, house rules, generated files
	@unformatted="$$($(GOFUMPT) -l .)"; test -z "$$unformatted" || { echo "not as gofumpt would have it (make format):"; echo "$$unformatted"; exit 1; }
	go vet ./...
	$(STATICCHECK) ./...
	go test -count=1 ./tests/archtest

.PHONY: format
format: ## Format the sources
	$(GOFUMPT) -w .

.PHONY: generate
generate: ## Write the generated files anew
	go generate ./...
	go run ./cmd/parlor config env --markdown > docs/settings.md.new && mv docs/settings.md.new docs/settings.md
	go run ./cmd/parlor config env > deploy/.env.example.new && mv deploy/.env.example.new deploy/.env.example

.PHONY: bench
bench: servers ## Measure scripts, requests, saves, deliveries and idle connections
	go run ./tests/bench
	go test ./realtime -run '^$$' -bench . -benchtime 1x

.PHONY: servers
servers: ## Install redis-server and haproxy where they are missing (needs root)
	@missing="$$(for s in redis-server haproxy; do command -v $$s >/dev/null || test -x /usr/sbin/$$s || echo $$s; done)"; \
	test -z "$$missing" || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: $$missing; install Redis 7.0 and HAProxy 2.6 or newer" >&2; exit 1; }; \
		echo "installing $$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }
