# All tasks of this repository. CI calls these targets, too.

GO ?= go

GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

GREMLINS ?= $(GO) run github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0

# Both need the network: for the vulnerability database, and for modules that are not
# in the cache.
GOVULNCHECK ?= $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0
GO_LICENSES ?= $(GO) run github.com/google/go-licenses@v1.6.0
LICENSES := Apache-2.0,BSD-2-Clause,BSD-3-Clause,ISC,MIT

# Old API servers for make servers. v1.19 is the oldest one with events.k8s.io/v1.
SERVERS ?= v1.19.16 v1.22.17 v1.30.4

# A test without the race detector does not use cgo either: so it shares what it compiles
# with the control plane and the other modules.
PURE := CGO_ENABLED=0 $(GO)

# The race detector needs cgo. Without cgo, run the tests without it.
RACE := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)

ROOT := github.com/eventseries/eventseries

# Users import the modules in RELEASED. Each of the others belongs to tests.
RELEASED := . controllerruntime cmd/kubectl-series cmd/eventsmigrate
MODULES := $(RELEASED) test test/controlplane test/monitoring test/consumers

FUZZTIME ?= 30s

# 0 selects a random seed, which the test prints.
CHAOS_SEED ?= 0
CHAOS_DURATION ?= 10m
# Old API servers, such as v1.30.4: one that is upgraded in the middle, and one that serves
# beside the other, with the same etcd.
CHAOS_FROM ?=
CHAOS_SECOND ?=

SOAK_SEED ?= 1
SOAK_DAYS ?= 30
SOAK_SERIES ?= 10000

# The chaos run that make recording records.
RECORDING_SEED ?= 3
RECORDING_DURATION ?= 3m

.DEFAULT_GOAL := help
.PHONY: help demo install-plugin dist reproducible sbom release-root release-modules release-rehearsal test unit unit-32 race plugin controlplane integration servers managers monitoring migrate catalog dashboard consumers casestudy-migrate casestudy-flux casestudy-kubelet casestudy-scheduler recording chaos soak mutate fuzz bench simulation scale report microbench lint fmt tidy api vuln licenses clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Compiles the control plane, or the programs in the given directories, in one workspace
# and without cgo, and shows the progress.
BUILD := CGO_ENABLED=0 $(GO) run ./internal/controlplane/build

# The demo compiles kubectl series and a real API server while it shows what happens in
# memory. What they share compiles once.
demo: ## demonstrate the recorder, in memory and on a real API server (needs only Go; the first run compiles one)
	@$(BUILD) cmd/demo
	@bin/demo $(DEMO_FLAGS)

# kubectl runs programs in $PATH as plugins, and kubectl_complete-series to complete the
# arguments of kubectl series.
PLUGINS := $(or $(shell $(GO) env GOBIN),$(firstword $(subst :, ,$(shell $(GO) env GOPATH)))/bin)

install-plugin: ## install kubectl series where go install puts programs
	cd cmd/kubectl-series && CGO_ENABLED=0 $(GO) install .
	ln -sf kubectl-series "$(PLUGINS)/kubectl_complete-series"
	@case ":$$PATH:" in *":$(PLUGINS):"*) ;; *) echo 'Add $(PLUGINS) to $$PATH, or kubectl does not find the plugin.' ;; esac

VERSION ?= v0.0.0

dist: ## build the archives of kubectl series for release VERSION in bin/dist
	GO="$(GO)" cmd/kubectl-series/release.sh $(VERSION) bin/dist $(PLATFORMS)

# The second build is in another directory, and has a cache of its own.
reproducible: dist ## build the archives of kubectl series for VERSION again, and compare them
	rm -rf bin/.again
	git clone --quiet . bin/.again
	cd bin/.again && GO="$(GO)" GOCACHE="$$PWD/.cache" cmd/kubectl-series/release.sh $(VERSION) dist $(PLATFORMS)
	diff bin/dist/checksums.txt bin/.again/dist/checksums.txt
	rm -rf bin/.again

sbom: ## software bills of materials of the released modules, and of the archives in bin/dist
	@GO="$(GO)" .ci/sbom $(VERSION)

# The steps of docs/releasing.md. TAG_FLAGS= makes tags without a signature.
release-root: ## commit the changelog of release VERSION, and tag the root module
	@GO="$(GO)" .ci/release root $(VERSION)

release-modules: ## let the other modules require release VERSION, test them, and tag them
	@GO="$(GO)" .ci/release modules $(VERSION)

release-rehearsal: ## release VERSION on a copy, then install and use it, with a module proxy of files
	cd test && $(GO) run ./release -version $(VERSION)

# The tests on the real API server mostly wait, so the last parts run two at a time. They
# begin when the control plane is there, whose progress is shown.
test: unit race plugin controlplane ## run all tests
	$(MAKE) --no-print-directory --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=line) integration managers monitoring migrate

controlplane:
	$(BUILD)

# Controllers run on 32-bit machines, too. The other packages import client-go, which would
# compile once more; the workflow tests them.
PACKAGES_32 := ./heartbeat ./internal/listdecoder ./internal/tracker ./series

# Before go vet looks at a package it looks at everything that the package imports, once
# for each set of analyzers and of versions. So make integration vets most packages at once,
# with the newest versions, and the other targets none whose dependencies are large. make lint
# vets all modules.
unit: ## run the unit tests, with the oldest client-go
	$(PURE) test -vet=off -timeout 20m ./...
	$(MAKE) --no-print-directory unit-32
	cd test && $(PURE) test -vet=off ./docs ./supply

# Some kernels run no 32-bit programs. To run none on this machine shows that.
unit-32:
	@if GOARCH=386 $(PURE) test -count 1 -vet=off -run '^$$' $(firstword $(PACKAGES_32)) >/dev/null 2>&1; then set -x; \
		GOARCH=386 $(PURE) test -short -vet=off -timeout 20m $(PACKAGES_32); \
	else \
		echo 'unit: this machine runs no 386 programs, so the tests of $(PACKAGES_32) are compiled and vetted for 386, but not run'; set -x; \
		GOOS=linux GOARCH=386 $(PURE) vet $(PACKAGES_32) && GOOS=linux GOARCH=386 $(PURE) test -c -o /dev/null $(PACKAGES_32); \
	fi

# go.mod requires the oldest client-go that works, so make unit tests it. test/go.mod
# requires the newest one. Code that works with both works with those in between.
# heartbeat does not import it, and is pure.
race: ## run the unit tests with the race detector and few random histories, with the newest client-go
	cd test && $(GO) test $(RACE) -short -vet=off -timeout 20m $(addprefix $(ROOT)/,cmd/demo compat/... events/... internal/... query series)

# Without the race detector: the plugin starts no goroutine. make unit tests those of the
# query package.
plugin: ## run the unit tests of kubectl series; make integration runs it on the real API server
	cd cmd/kubectl-series && $(PURE) test -vet=off ./...

# The tests in which several goroutines use a recorder. The race detector would compile what
# the others import once more.
RACY := chaos|conformance|controllerruntime|faultproxy|integration
racy = $(GO) list ./... | grep -E $(1) '^$(ROOT)/test/($(RACY))(/|$$)'

# Build the control plane first, because go test would not show the progress. The guards
# of the benchmarks do not work with the race detector. make unit runs docs and supply.
integration: controlplane ## run the tests on a real API server
	cd test/controlplane && $(PURE) test -vet=off ./...
	cd test && $(PURE) vet $(ROOT)/...
	cd test && $(GO) test $(RACE) -vet=off -timeout 20m $$($(call racy)) $(ROOT)/controllerruntime
	cd test && $(PURE) test -vet=off -timeout 20m $$($(call racy,-v) | grep -vE '/test/(docs|supply)$$')

# Not a part of make test: each server compiles for minutes.
servers: $(addprefix servers-,$(SERVERS)) ## run the integration tests on old API servers

servers-%: bin/servers/%/controlplane
	cd test && EVENTSERIES_CONTROLPLANE=$(CURDIR)/$< $(GO) test -count 1 -timeout 20m ./integration

.PRECIOUS: bin/servers/%/controlplane
bin/servers/%/controlplane: test/controlplane/old.sh $(wildcard test/controlplane/*.go)
	GO="$(GO)" $< $* $(@D)

# controllerruntime/go.mod requires the oldest controller-runtime that works, and the oldest
# client-go that works with it. The tests of both modules use these versions, so these
# compile once. make integration runs the same tests with the newest ones, and with the race
# detector.
managers: controlplane bin/matrix/controllerruntime.mod ## run the manager tests with the oldest supported controller-runtime
	cd controllerruntime && $(PURE) test -vet=off ./...
	cd test && $(PURE) test -vet=off -modfile=../bin/matrix/controllerruntime.mod ./controllerruntime/...

bin/matrix/controllerruntime.mod: controllerruntime/go.mod test/go.mod test/go.sum
	@mkdir -p $(@D)
	cp test/go.mod $(@D)/next.mod
	cp test/go.sum $(@D)/next.sum
	cd test && $(GO) get -modfile=../$(@D)/next.mod $$(awk '$$2 ~ /^v/ && $$1 != "$(ROOT)" { print $$1 "@" $$2 }' ../$<)
	mv $(@D)/next.sum $(@D)/controllerruntime.sum
	mv $(@D)/next.mod $@

# Without the race detector: nothing is concurrent, and Prometheus would compile twice.
monitoring: ## test the dashboard and the alert rules
	cd test/monitoring && $(PURE) test -vet=off ./...

# Without the race detector: nothing is concurrent but the parser.
migrate: catalog ## test eventsmigrate on programs for client-go and controller-runtime
	cd cmd/eventsmigrate && $(PURE) test -vet=all -timeout 20m ./...

# The events of two programs are a part of what a reviewer sees. The demo is loaded with the
# versions that make demo compiles, which make integration has compiled.
catalog: ## compare the catalogues of the demo and the backup controller with their events.md; CATALOG_FLAGS=-update writes these
	cd cmd/eventsmigrate && $(PURE) build -o ../../bin/eventsmigrate .
	CGO_ENABLED=0 GOWORK=$(CURDIR)/test/controlplane/go.work bin/eventsmigrate catalog -check cmd/demo/events.md $(CATALOG_FLAGS) ./cmd/demo
	cd test && CGO_ENABLED=0 ../bin/eventsmigrate catalog -check controllerruntime/backup/events.md $(CATALOG_FLAGS) ./controllerruntime/backup

# Not a part of make test: Kubernetes and its tests compile for most of an hour, and the
# story takes 20 minutes.
casestudy-migrate: ## move Kubernetes and two operators with eventsmigrate, run the result, and write docs/case-study.md
	$(BUILD)
	cd test && $(GO) run ./casestudy $(CASESTUDY_FLAGS)

# Not a part of make test: kustomize-controller compiles for a quarter of an hour, and then
# each recorder takes as long. FLUX_FLAGS=-recorder=tools/events selects one.
casestudy-flux: ## run kustomize-controller with each recorder, and write docs/case-study.md
	$(BUILD)
	cd test && $(GO) run ./casestudy -steps=flux $(FLUX_FLAGS)

# Not a part of make test: the kubelet compiles for a quarter of an hour, and then each
# recorder takes seven minutes. KUBELET_FLAGS=-recorder=tools/record selects one.
casestudy-kubelet: ## run a kubelet with crashing Pods with each recorder, and write docs/case-study.md
	$(BUILD)
	cd test && $(GO) run ./casestudy -steps=kubelet $(KUBELET_FLAGS)

dashboard: ## draw what the dashboard shows for the recorded run
	cd test/monitoring && $(GO) test -run TestPictureIsUpToDate . -write

# Not a part of make test: kubectl and OpenTelemetry compile for minutes. Without the race
# detector, which would compile them once more.
consumers: ## run programs that read Events on the real API server, and compare them with docs/consumers.md
	$(BUILD)
	cd test/consumers && $(GO) vet ./... && $(GO) test ./...

# Not a part of make test: kube-scheduler compiles for minutes, and then the cases take an
# hour. SCHEDULER_FLAGS='-case=30 Pods' selects cases.
casestudy-scheduler: ## run kube-scheduler with both recorders, and write docs/case-study.md
	$(BUILD)
	cd test && $(GO) run ./casestudy -steps=scheduler $(SCHEDULER_FLAGS)

recording: ## record the metrics of a chaos run for the dashboard
	$(BUILD)
	cd test && $(GO) test -count 1 -timeout 0 -v -run '^TestChaos$$' ./chaos -chaos.seed=$(RECORDING_SEED) -chaos.duration=$(RECORDING_DURATION) \
		-chaos.metrics=$(CURDIR)/test/monitoring/testdata/chaos.om.gz
	$(MAKE) dashboard

# No timeout: the test bounds each wait itself.
chaos: $(patsubst %,bin/servers/%/controlplane,$(sort $(CHAOS_FROM) $(CHAOS_SECOND))) ## kill, pause and disconnect two API servers for CHAOS_DURATION; CHAOS_SEED selects the faults, CHAOS_FROM an old server to upgrade, and CHAOS_SECOND an old second one
	$(BUILD)
	cd test && $(CHAOS_FROM:%=EVENTSERIES_CONTROLPLANE=$(CURDIR)/bin/servers/%/controlplane) $(GO) test $(RACE) -count 1 -timeout 0 -v -run '^TestChaos$$' ./chaos \
		-chaos.seed=$(CHAOS_SEED) -chaos.duration=$(CHAOS_DURATION) $(if $(CHAOS_FROM),-chaos.upgrade=$(CURDIR)/bin/controlplane) \
		$(if $(CHAOS_FROM)$(CHAOS_SECOND),-chaos.second=$(CURDIR)/bin/$(CHAOS_SECOND:%=servers/%/)controlplane)

# A race would show in the short soak of make unit.
soak: ## simulate SOAK_DAYS days of a controller and a server with faults; SOAK_SEED selects the faults
	$(GO) test -count 1 -timeout 0 -v -run '^TestSoak$$' ./events -soak.days=$(SOAK_DAYS) -soak.series=$(SOAK_SERIES) -soak.seed=$(SOAK_SEED)

fuzz: ## run each fuzz target for FUZZTIME
	@for dir in $$(grep -rl --include='*_test.go' 'func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		for target in $$(grep -rhoE --include='*_test.go' 'func Fuzz[A-Za-z]+' $$dir | awk '{print $$2}' | sort -u); do \
			$(GO) test $$dir -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
		done; \
	done

MUTATED ?= ./series ./heartbeat ./internal/tracker

# Not a part of CI: it compiles and tests each of a thousand mutants.
mutate: ## change the code of the core at each place, and list the changes that no test sees
	@for dir in $(MUTATED); do (set -x; $(GREMLINS) unleash --timeout-coefficient 5 --invert-logical --invert-loopctrl $$dir) || exit 1; done

# A million series with an occurrence every 5s are 200,000 occurrences per second.
SIMULATION_EVERY ?= 5s

# One file contains the results of all parts. A run replaces the results of its parts.
RESULTS := $(CURDIR)/docs/benchmarks/results.json
SUITE = cd test && $(GO) test -count 1 -timeout 0 -v -run '^TestSuite$$' ./bench -suite.results=$(RESULTS)

bench: ## run the benchmarks with client-go's recorders, and write docs/benchmarks.md
	$(BUILD)
	@mkdir -p $(dir $(RESULTS))
	$(SUITE) -suite.parts=hot,parallel,scale,heap,fresh,singles,flood,loop,slow,start,list,server
	@$(MAKE) report

simulation: ## simulate up to a million series for three virtual hours, and write docs/benchmarks.md
	@mkdir -p $(dir $(RESULTS))
	$(SUITE) -suite.parts=simulation -suite.every=$(SIMULATION_EVERY)
	@$(MAKE) report

scale: ## simulate a cluster with 5,000 nodes, and write docs/scale.md
	$(BUILD)
	@mkdir -p $(dir $(RESULTS))
	$(SUITE) -suite.parts=list,fleet
	@$(MAKE) report

report: ## write docs/benchmarks.md, docs/scale.md, and their charts from the last results
	cd test && $(GO) run ./bench/report -results $(RESULTS) -docs ../docs

microbench: ## run the Go benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Lints the root module with the oldest client-go. golangci-lint cannot use another
# go.mod, because it also runs go list outside of modules.
lint: ## run golangci-lint on all modules
	@for module in $(MODULES); do (set -x; cd $$module && CGO_ENABLED=0 $(GOLANGCI_LINT) run ./...) || exit 1; done

fmt: ## format the code
	$(GOLANGCI_LINT) fmt $(MODULES:%=./%/...)

# The programs in cmd/eventsmigrate/testdata are a module, too. go mod tidy ignores
# go.work. Before the first release, there is no version of the root module that these
# modules could load.
WORKSPACES := controllerruntime cmd/kubectl-series

tidy: ## run go mod tidy in all modules
	@for module in $(WORKSPACES); do (set -x; cd $$module && export GOWORK=off && $(GO) mod edit -replace $(ROOT)=$(CURDIR) && \
		trap '$(GO) mod edit -dropreplace $(ROOT)' EXIT && $(GO) mod tidy) || exit 1; done
	@for module in $(filter-out $(WORKSPACES),$(MODULES)) cmd/eventsmigrate/testdata; do (set -x; cd $$module && $(GO) mod tidy) || exit 1; done

# BASE selects the commit to compare with.
api: ## compare the exported API with the last release, and fail on incompatible changes without a changelog entry
	@GO="$(GO)" .ci/api $(BASE)

vuln: ## check for known vulnerabilities
	@for module in $(RELEASED); do (set -x; cd $$module && $(GOVULNCHECK) ./...) || exit 1; done

# Not those of the modules themselves: the go command adds the license of the root to them.
licenses: ## check the licenses of all dependencies of users
	@for module in $(RELEASED); do (set -x; cd $$module && $(GO_LICENSES) check ./... --ignore=$(ROOT) --allowed_licenses=$(LICENSES)) || exit 1; done

clean: ## remove build output
	rm -rf bin
