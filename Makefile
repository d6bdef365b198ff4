# The verbs of this repository. Each is one command that can be typed by hand.
.PHONY: check test race sim search fuzz mutants acts soak testbed bench dist deb rpm image

check: ## formatting, vet, staticcheck, builds for every supported system
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt would change these'; exit 1; }
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	for target in linux/amd64 linux/arm64 darwin/arm64 darwin/amd64; do \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build -o /dev/null ./cmd/doyen && \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go vet ./cmd/... || exit 1; done

test: ## the README's test command
	go test ./...

race: ## the same under the race detector
	go test -race ./...

SEEDS ?= 20000
sim: ## many seeds of the simulation: make sim SEEDS=100000
	go test ./testbed/simulation -run TestSimulation -seeds=$(SEEDS) -timeout 0 -v

SWAPS ?= 1
search: ## small worlds with lives, all states: make search SWAPS=2
	go test ./testbed/exhaustive -run 'TestEveryDeathInTurn|TestEveryOrderOfWrites|TestEveryOrderOfAChangeWithAWord' -whole -swaps=$(SWAPS) -wordstates=5000000 -timeout 0 -v

# A number of inputs, not a time: at the end of a time, Go's fuzzer may report
# "context deadline exceeded" for an input that it was still trying (golang/go#75804, in Go 1.26).
INPUTS ?= 50000
fuzz: ## that many inputs for every fuzz target: make fuzz INPUTS=2000000
	@go list ./... | while read package; do \
		go test -list '^Fuzz' $$package | grep '^Fuzz' | while read target; do \
			echo "$$package $$target"; \
			go test $$package -run '^$$' -fuzz "^$$target$$" -fuzztime $(INPUTS)x || exit 1; \
		done || exit 1; done

mutants: ## break the code in every known way: a test must notice each
	go run ./cmd/testbed mutants

ROUNDS ?= 100
acts: ## hooks, with what runs them killed, frozen or hung: make acts ROUNDS=300
	go test ./cmd/doyen -run 'NoTwoRuns|HandOverWaits|SecondLife|NextLifeReleases|RunWhoseHook' -rounds=$(ROUNDS) -parallel 5 -count=1 -timeout 0

FOR ?= 1h
soak: ## agents and programs under random faults: make soak FOR=8h
	go run ./cmd/testbed soak --for $(FOR)

testbed: ## three agents on this machine, with a live view
	go run ./cmd/testbed up

dist: ## archives, deb, rpm, container image and checksums, in dist/; SIGN=KEYFILE signs these with ssh-keygen
	cd packaging && go run . $(if $(SIGN),-sign $(abspath $(SIGN)))

ARCH ?= $(shell go env GOARCH)
deb rpm image: ## only this file, for this machine: make deb ARCH=arm64
	cd packaging && go run . -kind $@ -only linux/$(ARCH)

bench: ## the table of docs/performance.md
	go run ./cmd/testbed bench
