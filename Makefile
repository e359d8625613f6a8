# Everything that one does with this repository. CI calls these targets too.

GO ?= go

# The newest patch of each supported minor version of client-go that go.mod does
# not require already.
CLIENT_GO ?= v0.36.6 v0.37.2

# The oldest supported controller-runtime, and the client-go that it is made for.
# test/go.mod requires the newest.
CONTROLLER_RUNTIME ?= v0.23.0
CONTROLLER_RUNTIME_CLIENT_GO ?= v0.35.0

GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Both ask a server: the one for what is known of vulnerabilities, the other for
# modules that are not in the cache.
GOVULNCHECK ?= $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0
GO_LICENSES ?= $(GO) run github.com/google/go-licenses@v1.6.0
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT

# The race detector needs a C compiler. Where there is none, test without it.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

# The modules of this repository, the one that users get first.
MODULES := . test test/controlplane test/monitoring

FUZZTIME ?= 30s

# 0 takes any seed. It is printed.
CHAOS_SEED ?= 0
CHAOS_DURATION ?= 10m

# The run whose metrics are recorded.
RECORDING_SEED ?= 3
RECORDING_DURATION ?= 3m

.DEFAULT_GOAL := help
.PHONY: help demo test unit matrix integration managers monitoring dashboard recording chaos fuzz bench simulation report microbench lint fmt vuln licenses clean

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What takes minutes the first time goes first and says how far it is, and so does
# the rest: go run would compile in silence.
demo: ## show it at work on a real API server (needs only Go; compiles one the first time)
	@$(GO) run ./internal/controlplane/build
	@$(GO) build -v -o bin/demo ./cmd/demo
	@bin/demo $(DEMO_FLAGS)

test: unit matrix integration managers monitoring ## run all tests

unit: ## run the unit tests
	$(GO) vet ./...
	$(GO) test $(RACE) ./...

matrix: $(addprefix matrix-,$(CLIENT_GO)) ## run the unit tests with each supported client-go

# go.mod stays as it is: each version has a go.mod of its own in bin/.
matrix-%: bin/matrix/%.mod
	$(GO) vet -modfile=$< ./...
	$(GO) test -modfile=$< ./...

.PRECIOUS: bin/matrix/%.mod
bin/matrix/%.mod: go.mod go.sum
	@mkdir -p $(@D)
	cp go.mod $(@D)/next-$*.mod
	cp go.sum $(@D)/next-$*.sum
	$(GO) get -modfile=$(@D)/next-$*.mod k8s.io/client-go@$* k8s.io/api@$* k8s.io/apimachinery@$*
	$(GO) mod tidy -modfile=$(@D)/next-$*.mod
	mv $(@D)/next-$*.sum $(@D)/$*.sum
	mv $(@D)/next-$*.mod $@

# The control plane is compiled first, since go test shows nothing of it until it
# is done. Without cgo, as the tests use it: otherwise it is compiled twice. What the
# benchmarks guard cannot be seen under the race detector.
integration: ## run the tests on a real API server
	$(GO) run ./internal/controlplane/build
	cd test/controlplane && CGO_ENABLED=0 $(GO) vet ./... && CGO_ENABLED=0 $(GO) test ./...
	cd test && $(GO) vet ./... && $(GO) test $(RACE) -timeout 20m ./...
	cd test && $(GO) test -run '^TestGuard' ./bench

# The package is part of the tests of integration, with the newest.
managers: bin/matrix/controller-runtime-$(CONTROLLER_RUNTIME).mod ## run the tests of managers with the oldest controller-runtime
	$(GO) run ./internal/controlplane/build
	cd test && $(GO) vet -modfile=../$< -tags controller_runtime_v0_24 ./controllerruntime
	cd test && $(GO) test -modfile=../$< -tags controller_runtime_v0_24 $(RACE) ./controllerruntime

.PRECIOUS: bin/matrix/controller-runtime-%.mod
bin/matrix/controller-runtime-%.mod: test/go.mod test/go.sum
	@mkdir -p $(@D)
	cp test/go.mod $(@D)/next-controller-runtime-$*.mod
	cp test/go.sum $(@D)/next-controller-runtime-$*.sum
	cd test && $(GO) get -modfile=../$(@D)/next-controller-runtime-$*.mod sigs.k8s.io/controller-runtime@$* \
		$(addsuffix @$(CONTROLLER_RUNTIME_CLIENT_GO),k8s.io/client-go k8s.io/api k8s.io/apimachinery)
	cd test && $(GO) mod tidy -modfile=../$(@D)/next-controller-runtime-$*.mod
	mv $(@D)/next-controller-runtime-$*.sum $(@D)/controller-runtime-$*.sum
	mv $(@D)/next-controller-runtime-$*.mod $@

# Not with the race detector: there is nothing concurrent in it, and Prometheus would
# be compiled twice.
monitoring: ## test the dashboard and the alert rules
	cd test/monitoring && $(GO) vet ./... && $(GO) test ./...

dashboard: ## write the dashboard and its picture into docs/monitoring
	cd test/monitoring && $(GO) run ./cmd/dashboard $(CURDIR)

recording: ## record the metrics of a chaos run for dashboard
	$(GO) run ./internal/controlplane/build
	cd test && $(GO) test -count 1 -timeout 0 -v -run '^TestChaos$$' ./chaos -chaos.seed=$(RECORDING_SEED) -chaos.duration=$(RECORDING_DURATION) \
		-chaos.pushback -chaos.metrics=$(CURDIR)/test/monitoring/testdata/chaos.om.gz
	$(MAKE) dashboard

# Each wait in it has a bound of its own.
chaos: ## kill, pause and cut off a server for CHAOS_DURATION, as CHAOS_SEED says
	$(GO) run ./internal/controlplane/build
	cd test && $(GO) test $(RACE) -count 1 -timeout 0 -v -run '^TestChaos$$' ./chaos -chaos.seed=$(CHAOS_SEED) -chaos.duration=$(CHAOS_DURATION)

fuzz: ## run each fuzz target for FUZZTIME
	@for dir in $$(grep -rl --include='*_test.go' 'func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' 'func Fuzz[A-Za-z]+' $$dir | awk '{print $$2}' | sort -u); do \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# A million series that occur every 5s are 200,000 occurrences a second.
SIMULATION_EVERY ?= 5s

# The results of all parts are in one file. What is not run leaves those of its last run.
RESULTS := $(CURDIR)/docs/benchmarks/results.json
SUITE = cd test && $(GO) test -count 1 -timeout 0 -v -run '^TestSuite$$' ./bench -suite.results=$(RESULTS)

bench: ## compare with client-go's recorders, and write docs/benchmarks.md
	$(GO) run ./internal/controlplane/build
	@mkdir -p $(dir $(RESULTS))
	$(SUITE) -suite.parts=hot,parallel,scale,heap,fresh,flood,loop,start
	@$(MAKE) report

simulation: ## follow up to a million series for three virtual hours, and write docs/benchmarks.md
	@mkdir -p $(dir $(RESULTS))
	$(SUITE) -suite.parts=simulation -suite.every=$(SIMULATION_EVERY)
	@$(MAKE) report

report: ## write docs/benchmarks.md and its pictures, from the last results
	cd test && $(GO) run ./bench/report -results $(RESULTS) -docs ../docs

microbench: ## run the Go benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

# With the newest client-go. With the others make matrix vets: golangci-lint cannot be
# given another go.mod, since it also runs go list outside of modules.
lint: ## run golangci-lint on all modules
	@for module in $(MODULES); do (set -x; cd $$module && CGO_ENABLED=0 $(GOLANGCI_LINT) run ./...) || exit 1; done

fmt: ## format the code
	$(GOLANGCI_LINT) fmt ./... ./test/... ./test/controlplane/... ./test/monitoring/...

# What users get: the module of the root. The others are for tests.
vuln: ## look for known vulnerabilities
	$(GOVULNCHECK) ./...

licenses: ## look at the licences of all that users get
	$(GO_LICENSES) check ./... --allowed_licenses=$(LICENSES)

clean: ## remove what was built
	rm -rf bin
