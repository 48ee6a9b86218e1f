# A fresh machine needs Go (see go.mod), make and git; everything else is
# fetched as a pinned Go module the first time that it is wanted.

GO            ?= go
BIN           := bin
TOOLS         := $(BIN)/tools

# Pinned, so that a new release of a tool never turns a finished change red.
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT         := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)
ACTIONLINT_VERSION    := v1.7.12
ACTIONLINT            := $(TOOLS)/actionlint-$(ACTIONLINT_VERSION)
KUBECONFORM_VERSION   := v0.8.0
KUBECONFORM           := $(TOOLS)/kubeconform-$(KUBECONFORM_VERSION)
# Its version, and those of all that it needs, stand in package-lock.json.
YAML_SERVER           := $(TOOLS)/yaml-language-server
NFPM_VERSION          := v2.45.2
NFPM                  := $(TOOLS)/nfpm-$(NFPM_VERSION)

# More flags for go test, for example TESTFLAGS=-v.
TESTFLAGS     ?=
# How many packages are tested at one time: one more than there are processors,
# because some mostly wait.
ATONCE        ?= $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN))
# How long one fuzz target runs.
FUZZTIME      ?= 20s
# How long the soak goes on, in minutes, how often the power then goes in each
# of the six tests of that, and how long an idle agent is looked at.
SOAK_MINUTES  ?= 20
POWER_CUTS    ?= 75
IDLE_MINUTES  ?= 10
# Which benchmarks run, and for how long each.
BENCH         ?= .
BENCHTIME     ?= 1x

# What the program says of itself: the tag, where this commit has one or
# follows one, and the commit, also where go leaves version control alone.
VERSION       ?= $(shell git describe --tags --dirty 2>/dev/null)
REVISION      ?= $(shell git rev-parse HEAD 2>/dev/null)
MODIFIED      ?= $(shell git status --porcelain --untracked-files=no 2>/dev/null | head -c 1 | tr -d '\n' | sed 's/./yes/')
STAMP          = -X main.stampedVersion=$(VERSION) -X main.stampedRevision=$(REVISION) -X main.stampedModified=$(MODIFIED)

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/gitopsd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(STAMP)' -o $(BIN)/gitopsd ./cmd/gitopsd

# Without vet, which lint runs over the same files.
.PHONY: test
test: ## run the fast tests: no root, no network beyond loopback, under three minutes
	$(GO) test -vet=off -p $(ATONCE) $(TESTFLAGS) ./...

.PHONY: race
race: ## run the fast tests with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race $(TESTFLAGS) ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## vet, format and lint with the pinned tools
	$(GO) vet ./...
	$(GO) vet -tags system ./...
	$(GOLANGCI_LINT) run ./...

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(ACTIONLINT):
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	mv $(TOOLS)/actionlint $@

# Inputs that are merely interesting are hardly made smaller: with targets that
# run a whole fleet that would take all of the time.
.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (20s)
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; \
	done

.PHONY: bench
bench: $(KUBECONFORM) ## run the benchmarks, each beside its reference (BENCH, BENCHTIME)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

.PHONY: demo
demo: build ## watch a fleet roll out, stop a bad release, and finish with the fix
	./$(BIN)/gitopsd demo

.PHONY: pictures
pictures: ## draw the comments of the documentation anew (needs Chromium)
	$(GO) run ./internal/comment/pictures

$(KUBECONFORM):
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/yannh/kubeconform/cmd/kubeconform@$(KUBECONFORM_VERSION)
	mv $(TOOLS)/kubeconform $@

# Where there is no npm, the tests that need it skip and say so.
$(YAML_SERVER)/installed: internal/agreement/package-lock.json
	@mkdir -p $(YAML_SERVER)
	@cp internal/agreement/package.json internal/agreement/package-lock.json $(YAML_SERVER)
	@if command -v npm >/dev/null; then cd $(YAML_SERVER) && npm ci --silent --no-audit --no-fund --ignore-scripts && touch installed; fi

.PHONY: test-system
test-system: $(ACTIONLINT) $(KUBECONFORM) $(YAML_SERVER)/installed ## run the tests that need root or minutes
	$(GO) test -tags system -run '^TestSystem' -timeout 20m -parallel 3 $(TESTFLAGS) ./...

.PHONY: soak
soak: soak-fleet soak-device ## run both of the next two

.PHONY: soak-fleet
soak-fleet: ## run 50 agents and two daemons through trouble for SOAK_MINUTES (20), show what grew
	SOAK_MINUTES=$(SOAK_MINUTES) $(GO) test -tags system -run '^TestSoak$$' -count=1 -timeout 0 -v $(TESTFLAGS) ./internal/systemtest

.PHONY: soak-device
soak-device: ## cut a device's power 450 times (6 x POWER_CUTS), meet every fault of its network, watch it idle
	GITOPSD_POWER_CUTS=$(POWER_CUTS) GITOPSD_NETWORK=all GITOPSD_IDLE_MINUTES=$(IDLE_MINUTES) $(GO) test -tags system \
	  -run '^TestSystem(PowerCut(|Agent|Application|Moments|MomentsAgent|MomentsOSTree)|Network|IdleAgent)$$' -count=1 -timeout 0 -parallel 3 -v $(TESTFLAGS) ./internal/systemtest

.PHONY: check
check: build lint test test-system ## what continuous integration runs, the demo aside
	./$(BIN)/gitopsd demo > /dev/null

# Which architecture is packed, in Go's words, and where the packages are put:
# beside those of other versions and architectures.
GOARCH        ?= $(shell $(GO) env GOARCH)
PACKAGES      ?= $(BIN)/packages

.PHONY: packages
packages: $(NFPM) ## build bin/packages: a deb and an rpm of this commit (GOARCH)
	mkdir -p $(PACKAGES)/$(GOARCH)
	CGO_ENABLED=0 GOARCH=$(GOARCH) $(GO) build -trimpath -ldflags '$(STAMP) -s -w' -o $(PACKAGES)/$(GOARCH)/gitopsd ./cmd/gitopsd
	$(GO) run ./cmd/gitopsd completion bash > $(PACKAGES)/$(GOARCH)/gitopsd.bash
	for kind in deb rpm; do \
	  PACKAGE_DIR=$(PACKAGES)/$(GOARCH) GOARCH=$(GOARCH) VERSION=$(or $(VERSION:v%=%),0.0.0) \
	    $(NFPM) package --config packaging/nfpm.yaml --packager $$kind --target $(PACKAGES) || exit 1; \
	done

$(NFPM):
	GOBIN=$(CURDIR)/$(TOOLS) $(GO) install github.com/goreleaser/nfpm/v2/cmd/nfpm@$(NFPM_VERSION)
	mv $(TOOLS)/nfpm $@

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN)
