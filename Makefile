# The tasks of this repository. CI calls these targets, too. docs/releasing.md has the
# commands that run once for each release.

GO ?= go
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Both need the network: for the vulnerability database, and for modules that are not
# in the cache.
GOVULNCHECK ?= $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0
GO_LICENSES ?= $(GO) run github.com/google/go-licenses@v1.6.0
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT

# Most of what these tasks do is compiling. With up to 2 GiB for each process, the Go compiler
# collects garbage less often, which takes a fifth less CPU.
export GOGC ?= 1000
export GOMEMLIMIT ?= 2GiB

# A test without the race detector does not use cgo either: so it shares what it compiles
# with the control plane and the other modules.
PURE := CGO_ENABLED=0 $(GO)

# The race detector needs cgo. Without cgo, run the tests without it.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

ROOT := github.com/eventseries/eventseries

# go.mod of test, with the versions of controllerruntime/go.mod.
MATRIX := bin/matrix/controllerruntime.mod

# Users import the modules in RELEASED. Each of the others belongs to tests.
RELEASED := . controllerruntime cmd/kubectl-series cmd/eventsmigrate
MODULES := $(RELEASED) test test/controlplane test/monitoring

.DEFAULT_GOAL := help
.PHONY: help demo install-plugin test unit race controlplane integration managers migrate monitoring chaos soak fuzz bench report lint tidy api supply

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Compiles the control plane, or the programs in the given directories, in one workspace
# and without cgo, and shows the progress.
BUILD := $(PURE) run ./internal/controlplane/build

# The demo compiles kubectl series and a real API server while it shows what happens in
# memory. What they share compiles once.
demo: ## demonstrate the recorder, in memory and on a real API server (needs only Go; the first run compiles one)
	@$(BUILD) cmd/demo
	@bin/demo $(DEMO_FLAGS)

# kubectl runs programs in $PATH as plugins, and kubectl_complete-series to complete the
# arguments of kubectl series.
PLUGINS := $(or $(shell $(GO) env GOBIN),$(firstword $(subst :, ,$(shell $(GO) env GOPATH)))/bin)

install-plugin: ## install kubectl series where go install puts programs
	cd cmd/kubectl-series && $(PURE) install .
	ln -sf kubectl-series "$(PLUGINS)/kubectl_complete-series"
	@case ":$$PATH:" in *":$(PLUGINS):"*) ;; *) echo 'Add $(PLUGINS) to $$PATH, or kubectl does not find the plugin.' ;; esac

# Two parts run at a time, since some tests mostly wait. What parts have in common compiles
# once: unit needs the packages of controlplane last, and integration those of race.
test: ## run all tests
	@mkdir -p "$$($(GO) env GOPATH)/pkg/sumdb" || { echo 'test: set HOME or GOPATH to a directory where the go command can keep checksums of modules'; exit 1; }
	$(MAKE) --no-print-directory --jobs=2 controlplane unit race
	$(MAKE) --no-print-directory --jobs=2 integration managers migrate monitoring

# Controllers and readers run on 32-bit machines, too. Most other packages do little arithmetic; the
# workflow tests them.
PACKAGES_32 := ./heartbeat ./internal/schedule ./internal/tracker ./query ./series

# make lint vets all modules. In each of these targets, go vet would look at all that the
# packages import once more.
#
# Some kernels run no 32-bit programs. A test binary that runs no test shows that.
unit: ## run the unit tests, with the oldest client-go, and those of the core as 32-bit programs
	$(PURE) test -vet=off -timeout 20m ./...
	@if GOARCH=386 $(PURE) test -count 1 -vet=off -run '^$$' $(firstword $(PACKAGES_32)) >/dev/null 2>&1; then set -x; \
		GOARCH=386 $(PURE) test -short -vet=off -timeout 20m $(PACKAGES_32); \
	else \
		echo 'unit: this machine runs no 386 programs, so the tests of $(PACKAGES_32) are compiled and vetted for 386, but not run'; set -x; \
		GOOS=linux GOARCH=386 $(PURE) vet $(PACKAGES_32) && GOOS=linux GOARCH=386 $(PURE) test -c -o /dev/null $(PACKAGES_32); \
	fi
	cd cmd/kubectl-series && $(PURE) test -vet=off ./...

# go.mod requires the oldest client-go that works, so make unit tests it. test/go.mod
# requires the newest one. Code that works with both works with those in between.
# heartbeat does not import it, and is pure.
race: ## run the unit tests with the race detector and few random histories, with the newest client-go
	cd test && $(GO) test $(RACE) -short -vet=off -timeout 20m $(addprefix $(ROOT)/,cmd/demo compat/... events/... internal/... query series)

controlplane: ## compile the API server of the tests into bin
	$(BUILD)

# The tests in which several goroutines use a recorder. The guards of the benchmarks, which
# are among the others, do not work with the race detector.
RACY := chaos|conformance|controllerruntime|faultproxy|integration|knative
racy = $(GO) list ./... | grep -E $(1) '^$(ROOT)/test/($(RACY))(/|$$)'

# An old API server, such as v1.30.4, for make integration. v1.19 is the oldest one with
# events.k8s.io/v1. Each compiles for minutes.
SERVER ?=
OLD = bin/servers/$(1)/controlplane

ifeq ($(SERVER),)
integration: controlplane ## run the tests on a real API server, with the race detector and the newest client-go; SERVER=v1.30.4 selects an old one
	cd test && $(GO) test $(RACE) -vet=off -timeout 20m $$($(call racy)) $(ROOT)/controllerruntime
else
integration: $(call OLD,$(SERVER))
	cd test && EVENTSERIES_CONTROLPLANE="$(CURDIR)/$<" $(GO) test -count 1 -timeout 20m ./integration
endif

.PRECIOUS: $(call OLD,%)
$(call OLD,%): test/controlplane/old.sh $(wildcard test/controlplane/*.go)
	GO="$(GO)" $< $* $(@D)

# controllerruntime/go.mod requires the oldest controller-runtime that works, and the oldest
# client-go that works with it. make integration runs the tests of managers with the newest
# ones. The tests that make integration does not run use these versions as well, so that all
# tests without the race detector share what they compile.
managers: controlplane $(MATRIX) ## run the tests of managers, and all that need no race detector, with the oldest controller-runtime
	cd controllerruntime && $(PURE) test -vet=off ./...
	cd test && $(PURE) test -vet=off -timeout 20m -modfile=../$(MATRIX) ./controllerruntime/... $$($(call racy,-v))
	cd test && $(PURE) test -vet=off -count 1 -modfile=../$(MATRIX) ./docs ./supply # they read files of other modules, which the cache ignores

$(MATRIX): controllerruntime/go.mod test/go.mod test/go.sum
	@mkdir -p $(@D)
	cp test/go.mod $(@D)/next.mod
	cp test/go.sum $(@D)/next.sum
	cd test && $(GO) get -modfile=../$(@D)/next.mod $$(awk '$$2 ~ /^v/ && $$1 != "$(ROOT)" { print $$1 "@" $$2 }' ../$<)
	mv $(@D)/next.sum $(@D)/controllerruntime.sum
	mv $(@D)/next.mod $@

# The events of two programs are a part of what a reviewer sees. They are loaded with the
# versions and flags with which make controlplane and make integration compile them.
migrate: ## test eventsmigrate, and compare two programs with their events.md; CATALOG_FLAGS=-update writes these
	cd cmd/eventsmigrate && $(PURE) build -o ../../bin/eventsmigrate .
	CGO_ENABLED=0 GOWORK="$(CURDIR)/test/controlplane/go.work" bin/eventsmigrate catalog -check cmd/demo/events.md $(CATALOG_FLAGS) ./cmd/demo
	cd test && GOFLAGS=$(RACE) ../bin/eventsmigrate catalog -check controllerruntime/backup/events.md $(CATALOG_FLAGS) ./controllerruntime/backup
	cd cmd/eventsmigrate && $(PURE) test -vet=off -timeout 60m ./...

monitoring: ## test the dashboard and the alert rules
	cd test/monitoring && $(PURE) test -vet=off -count 1 ./...

# 0 selects a random seed, which the test prints.
CHAOS_SEED ?= 0
CHAOS_DURATION ?= 10m
# Old API servers, such as v1.30.4: one that is upgraded in the middle, and one that serves
# beside the other, with the same etcd.
CHAOS_FROM ?=
CHAOS_SECOND ?=

# No timeout: the test bounds each wait itself.
chaos: controlplane $(patsubst %,$(call OLD,%),$(sort $(CHAOS_FROM) $(CHAOS_SECOND))) ## kill, pause and disconnect two API servers for CHAOS_DURATION; CHAOS_SEED selects the faults, CHAOS_FROM an old server to upgrade, and CHAOS_SECOND an old second one
	cd test && $(if $(CHAOS_FROM),EVENTSERIES_CONTROLPLANE="$(CURDIR)/$(call OLD,$(CHAOS_FROM))") $(GO) test $(RACE) -count 1 -timeout 0 -v -run '^TestChaos$$' ./chaos \
		-chaos.seed=$(CHAOS_SEED) -chaos.duration=$(CHAOS_DURATION) $(if $(CHAOS_FROM),-chaos.upgrade="$(CURDIR)/bin/controlplane") \
		$(if $(CHAOS_FROM)$(CHAOS_SECOND),-chaos.second="$(CURDIR)/$(if $(CHAOS_SECOND),$(call OLD,$(CHAOS_SECOND)),bin/controlplane)")

SOAK_SEED ?= 1
SOAK_DAYS ?= 30
SOAK_SERIES ?= 10000

# A race would show in the short soak of make race.
soak: ## simulate SOAK_DAYS days of SOAK_SERIES series and a server with faults; SOAK_SEED selects the faults
	$(GO) test -count 1 -timeout 0 -v -run '^TestSoak$$' ./events -soak.days=$(SOAK_DAYS) -soak.series=$(SOAK_SERIES) -soak.seed=$(SOAK_SEED)

FUZZTIME ?= 30s

fuzz: ## run each fuzz target for FUZZTIME
	@for dir in $$(grep -rl --include='*_test.go' 'func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' 'func Fuzz[A-Za-z]+' $$dir | awk '{print $$2}' | sort -u); do \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

# One file contains the results of all parts. A run replaces the results of its parts.
RESULTS = "$(CURDIR)/docs/benchmarks/results.json"

bench: export GOGC = 100
bench: export GOMEMLIMIT = off
bench: controlplane ## run the benchmarks with client-go's recorders, and write their pages; BENCH_FLAGS=-suite.parts=… selects parts
	cd test && $(GO) test -count 1 -timeout 0 -v -run '^TestSuite$$' ./bench -suite.results=$(RESULTS) $(BENCH_FLAGS)
	@$(MAKE) --no-print-directory report

report: ## write the pages of the benchmarks from the last results
	cd test && $(GO) run ./bench/report -results $(RESULTS) -docs ../docs

# Lints the root module with the oldest client-go. golangci-lint cannot use another
# go.mod, because it also runs go list outside of modules.
lint: ## run golangci-lint on all modules
	@for module in $(MODULES); do (set -x; cd $$module && CGO_ENABLED=0 $(GOLANGCI_LINT) run ./...) || exit 1; done

# The programs in cmd/eventsmigrate/testdata are a module, too. go mod tidy ignores
# go.work. Before the first release, there is no version of the root module that these
# modules could load.
WORKSPACES := controllerruntime cmd/kubectl-series

tidy: ## format the code, and run go mod tidy in all modules
	$(GOLANGCI_LINT) fmt $(MODULES:%=./%/...)
	@for module in $(WORKSPACES); do (set -x; cd $$module && export GOWORK=off && $(GO) mod edit -replace "$(ROOT)=$(CURDIR)" && \
		trap '$(GO) mod edit -dropreplace $(ROOT)' EXIT && $(GO) mod tidy) || exit 1; done
	@for module in $(filter-out $(WORKSPACES),$(MODULES)) cmd/eventsmigrate/testdata; do (set -x; cd $$module && $(GO) mod tidy) || exit 1; done

# BASE selects the commit to compare with.
api: ## compare the exported API with the last release, and fail on incompatible changes without a changelog entry
	@GO="$(GO)" .ci/api $(BASE)

# Not the licenses of the modules themselves: the go command adds the one of the root to them.
supply: ## check for known vulnerabilities, and the licenses of all dependencies of users
	@for module in $(RELEASED); do (set -x; cd $$module && $(GOVULNCHECK) ./... && \
		$(GO_LICENSES) check ./... --ignore=$(ROOT) --allowed_licenses=$(LICENSES)) || exit 1; done
