# The commands of the project. `make help` lists them.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory
.DEFAULT_GOAL := help

GOFUMPT     := go run mvdan.cc/gofumpt@v0.12.0
STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.8.2

# The folders with npm packages: the SDK and the pages.
FRONTENDS := sdk web

# Node is needed for these two only; their built files are committed. What is older than NODE_MIN is
# replaced by NODE_PACKAGE in .node/: Debian 12 has Node 18.
NODE_MIN     := 20.19
NODE_PACKAGE := node-linux-$(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x64)@22.23.3
export PATH  := $(CURDIR)/.node/node_modules/.bin:$(PATH)

# The number of test binaries that run at the same time. Each starts its own Redis servers.
PARALLEL ?= 3

# The packages whose tests take longest start first: some compute, others wait, so that both cores
# have work until the end.
SLOWEST := ./tests/chaos ./rooms ./handlers ./tests/story ./tests/balancertest ./cmd/parlor ./internal/store/redisdb

# These have one goroutine. The race detector would only make them three times as slow.
SEQUENTIAL := ./scripts ./internal/ops/migrate ./tests/mutants

# `make check` runs these, so `make test` does not.
CHECKED := ./tests/archtest

# Reports of the race detector and stacks need no DWARF. Without it compiling takes a tenth less CPU
# time, and linking a quarter.
RACE_FLAGS := -race -gcflags=all=-dwarf=false -ldflags=-w

# Tests that are modules of their own, for what Parlor does not need: the types of Kubernetes and
# Envoy, and a generator of clients.
MODULES := tests/chart tests/clients

# Puts the temporary files of tests, which are those of their stores, into memory where there is
# room and programs may run: an fsync takes no time there.
MEMORY    := /dev/shm
MEMORY_GB := 4
IN_MEMORY  = folder="$$(mktemp -d $(MEMORY)/parlor-test-XXXXXX 2>/dev/null || mktemp -d)"; \
	trap 'rm -rf "$$folder"' EXIT; \
	if test "$$(df --output=avail -BG "$$folder" | tail -1 | tr -dc 0-9)" -ge $(MEMORY_GB) && \
		cp "$$(type -P true)" "$$folder" && "$$folder/true"; then \
		export GOTMPDIR="$${TMPDIR:-/tmp}" TMPDIR="$$folder"; \
	fi

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: run
run: build ## Start a node to play with; it needs no Redis and stores nothing. Click what it prints
	@bin/parlor dev

.PHONY: build
build: ## Build bin/parlor
	@go build -o bin/parlor ./cmd/parlor

# Where Go installs programs, unless PREFIX is set: PREFIX=/usr/local make install
.PHONY: install
install: build ## Install parlor, and say how the shell finds it
	@folder="$${PREFIX:+$$PREFIX/bin}"; folder="$${folder:-$$(go env GOBIN)}"; \
	gopath="$$(go env GOPATH)"; folder="$${folder:-$${gopath%%:*}/bin}"; \
	install -d "$$folder"; install -m 755 bin/parlor "$$folder/parlor"; echo "installed $$folder/parlor"; \
	case ":$$PATH:" in *":$$folder:"*) ;; \
	*) echo "It is not in the PATH of this shell. Add it, and put the line into the profile of your shell:"; \
		echo "export PATH=\"$$folder:\$$PATH\"" ;; esac

# Go takes the version from the tag of the commit, v1.0.0, and gives each other commit a number of its own.
RELEASE_SYSTEMS := linux/amd64 linux/arm64
RELEASE_FLAGS   := -trimpath -buildvcs=true -ldflags="-s -w"

.PHONY: release
release: ## Build the files of a release in bin/release, the same bytes wherever it runs
	@rm -rf bin/release && mkdir -p bin/release
	@for s in $(RELEASE_SYSTEMS); do \
		CGO_ENABLED=0 GOOS=$${s%/*} GOARCH=$${s#*/} go build $(RELEASE_FLAGS) -o bin/release/parlor-$${s%/*}-$${s#*/} ./cmd/parlor; done
	@cd bin/release && sha256sum parlor-* | tee SHA256SUMS

# The second clone compiles everything anew, in a cache of its own; that takes minutes.
.PHONY: release-check
release-check: ## Build the release of this commit in two clones, and compare the bytes
	@folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; \
	commit="$$(git rev-parse HEAD)"; source="$$(git rev-parse --path-format=absolute --git-common-dir)"; \
	for n in one two; do \
		git clone -q "$$source" "$$folder/$$n"; git -C "$$folder/$$n" checkout -q --detach "$$commit"; \
		test $$n = one || export GOCACHE="$$folder/cache"; \
		$(MAKE) -C "$$folder/$$n" release RELEASE_SYSTEMS=linux/amd64; \
	done; \
	cmp "$$folder/one/bin/release/SHA256SUMS" "$$folder/two/bin/release/SHA256SUMS"; \
	"$$folder/one/bin/release/parlor-linux-amd64" version; echo "the same bytes"

# Two at once: those of the pages wait for a browser most of the time, and the sequential ones follow.
# One that fails does not end the others.
.PHONY: test
test: servers build modules chromium ## Run all tests, those of Go with the race detector and on real Redis servers
	@$(MAKE) --no-print-directory -j2 -k test-go test-web test-sequential

# `make check` vets the packages.
.PHONY: test-go
test-go: servers ## Run the tests of Go, with the race detector and on real Redis servers
	@packages="$$(go list ./... | grep -vFx "$$(go list $(SEQUENTIAL) $(CHECKED))")"; $(IN_MEMORY); \
	go build $(RACE_FLAGS) -o bin/parlor-race ./cmd/parlor; export NODETEST_BIN="$(CURDIR)/bin/parlor-race"; \
	go test $(RACE_FLAGS) -count=1 -vet=off -p $(PARALLEL) -timeout 15m $(SLOWEST) $$packages

.PHONY: test-sequential
test-sequential: servers ## Run the tests of Go that have one goroutine, without the race detector
	@$(IN_MEMORY); go test -count=1 -vet=off -timeout 10m $(SEQUENTIAL); \
	for m in $(MODULES); do (cd $$m && go test -count=1 -vet=off -timeout 10m ./...) || exit 1; done

.PHONY: test-web
test-web: build modules chromium ## Run the tests of the SDK and of the pages, in Node and in Chromium
	@for f in $(FRONTENDS); do (cd $$f && export PARLOR_BIN=$(CURDIR)/bin/parlor && npm test && npm run --if-present test:browser) || exit 1; done

.PHONY: web
web: modules ## Build the SDK and the pages that a node serves; commit what changed
	@for f in $(FRONTENDS); do (cd $$f && npm run --silent --if-present generate && npm run --silent build); done

.PHONY: screenshots
screenshots: build modules chromium ## Take the pictures of the README again
	@cd web && npm run --silent screenshots

.PHONY: check
check: servers modules ## Check format, vet, staticcheck, types, architecture rules (line width included) and built files
	@unformatted="$$($(GOFUMPT) -l .)"; test -z "$$unformatted" || { echo "not formatted (run make format):"; echo "$$unformatted"; exit 1; }
	go vet ./...
	for m in $(MODULES); do (cd $$m && go vet ./...) || exit 1; done
	$(STATICCHECK) ./...
	go test -count=1 ./tests/archtest
	@for f in $(FRONTENDS); do (cd $$f && npm run --silent typecheck && npm run --silent check:fresh); done

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
	go test ./competition/leaderboards -run '^$$' -bench . -benchtime 1x -entries 1000000
	go test ./rooms ./internal/money/prizes ./competition/tournaments -p 1 -run '^$$' -bench 'Finish|HundredPayouts|RoundOf1000' -benchtime 1x

.PHONY: bench-long
bench-long: servers ## Remove a season of ten million entries; takes minutes and 3 GB of memory
	go test ./competition/leaderboards -run '^$$' -bench Removal -benchtime 1x -entries 10000000 -timeout 60m

.PHONY: hostile
hostile: servers ## Let one guest, then one game, do its worst for a minute while others play for money
	go test ./tests/hostile -count=1 -v -timeout 10m -attack 60s -baseline 20s -ratio 1.5

.PHONY: chaos
chaos: servers ## Prove for an hour that no unit of money is made or lost; docs/proof.md has the figures
	cd tests/chaos && go test -count=1 -long -timeout 90m
	cd realtime && go test -count=1 -run TestClientsAgreeWithTheHistoryWhateverIsCut -rapid.checks 1000 -timeout 30m

.PHONY: versions
versions: servers ## Roll between the release before and this one for an hour, while players play on both
	cd tests/versions && go test -count=1 -long -v -timeout 90m -run TestTwoReleases

# RUN picks drills by their names: make drill RUN='a node killed'
RUN ?=

.PHONY: drill
drill: servers ## Take an installation through each planned change and each fault while it is used; docs/proof.md has the table
	@cd tests/drill && go test -count=1 -all -timeout 60m -run 'TestDrills/$(RUN)'

.PHONY: mutants
mutants: servers ## Break scripts and Go code that money hangs on, one line at a time: a test must notice each defect
	go run ./tests/mutants

# Each target is fuzzed for FUZZ_TIME.
FUZZ_TIME ?= 60s

.PHONY: fuzz
fuzz: servers ## Fuzz amounts, requests, frames, tokens, saves and rules, a minute each
	@grep -rnoE --include='*_test.go' 'func Fuzz[A-Za-z]+' . | sed -E 's|/[^/]+_test.go:[0-9]+:func | |' | sort | \
	while read -r package target; do \
		echo "$$package $$target"; \
		go test "$$package" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ_TIME) -parallel 2 </dev/null || exit 1; \
	done

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
servers: ## Install redis-server, haproxy, nginx and caddy if they are missing (needs root)
	@missing="$$(for s in redis-server haproxy nginx caddy; do command -v $$s >/dev/null || test -x /usr/sbin/$$s || echo $$s; done)"; \
	test -z "$$missing" || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: $$missing; install Redis 7.0, HAProxy 2.6, nginx 1.22 and Caddy 2.6 or newer" >&2; exit 1; }; \
		echo "installing $$missing"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; }

# npm ci runs again when a lockfile has changed.
.PHONY: modules
modules: $(FRONTENDS:%=%/node_modules/.package-lock.json)

%/node_modules/.package-lock.json: %/package-lock.json %/.npmrc | node
	@echo "installing the packages of $*"
	@cd $* && npm ci --no-audit --no-fund --loglevel=error >/dev/null && touch node_modules/.package-lock.json

.PHONY: node
node: ## Install Node if it is missing or too old (npm of Debian needs root)
	@command -v npm >/dev/null || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: Node $(NODE_MIN) or newer, with npm" >&2; exit 1; }; \
		echo "installing npm"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null; }
	@printf '%s\n' $(NODE_MIN) "$$(node --version | tr -d v)" | sort -VC || { \
		echo "installing $(NODE_PACKAGE) in .node, because Node is $$(node --version)"; \
		npm install --prefix .node --no-save --no-audit --no-fund --loglevel=error $(NODE_PACKAGE) >/dev/null; }

.PHONY: chromium
chromium: ## Install Chromium if there is none (needs root)
	@test -n "$${PARLOR_CHROMIUM:-}" || command -v chromium >/dev/null || command -v google-chrome >/dev/null || { \
		command -v apt-get >/dev/null && test "$$(id -u)" = 0 || { echo "missing: chromium; install it or set PARLOR_CHROMIUM" >&2; exit 1; }; \
		echo "installing chromium"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
