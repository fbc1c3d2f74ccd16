# ibwarden: everything that a developer runs. `make help` lists it.
GO        ?= go
FUZZTIME  ?= 5s
# Debian packages that tests run beside ibwarden, and those that only long tests need: of packages, of
# Linux machines, and of the proof. make test leaves these out.
PACKAGES  := curl openssh-client opensm ibsim-utils infiniband-diags ibutils tshark etcd-server prometheus prometheus-alertmanager chromium fonts-dejavu-core
LONG := slurmctld slurm-client lintian rpm rpmlint cpio mandoc zsh fish mmdebstrap systemd-container qemu-system-x86 coq
# Directories with a module of their own, which make test and make lint look at too.
MODULES   := kubernetes packaging website verify test/openidprovider

.PHONY: claims help build man deb rpm image release site test test-long test-all test-kubernetes tools tools-all docs lint race vulnerabilities fuzz mutate breaks bench benchscale benchservice benchconsole console-shots soak clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z -]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/ibwarden
	$(GO) build -o bin/ibwarden ./cmd/ibwarden

man: ## write the manual pages into bin/man
	$(GO) run ./internal/app/manpages bin/man

deb rpm image: ## build a Debian package, an RPM package or a container image into bin; ARCH=arm64 for another processor
	@cd packaging && $(GO) run ./release -o ../bin $(if $(ARCH),-arch $(ARCH)) $@

release: ## build everything that is published into bin/release: packages, images, archives, lists of modules, checksums
	@cd packaging && $(GO) run ./release -o ../bin/release all

site: ## write the documentation as a site of static pages into bin/site
	cd website && $(GO) run .

test: tools ## install what the tests need (Debian packages, when it may) and run all but the long ones, in minutes; says what was left out
	$(GO) vet ./...
	@GO='$(GO)' MODULES='$(MODULES)' scripts/test -short

test-long: tools-all ## make test with the long tests: packages on hosts of their own, takeovers, kills, fabrics that run for minutes
	$(GO) vet ./...
	@GO='$(GO)' MODULES='$(MODULES)' scripts/test

test-all: test-long test-kubernetes ## every test that there is

# kube-apiserver is compiled from its sources, the first time for minutes.
test-kubernetes: tools ## build Kubernetes's API server, and run the controller's tests on it with etcd and a service
	$(GO) build -C kubernetes/test/apiserver -o $(CURDIR)/bin/kube-apiserver .
	@(cd kubernetes && IBWARDEN_KUBE_APISERVER=$(CURDIR)/bin/kube-apiserver $(GO) test -json -count=1 -timeout 30m ./...) | $(GO) run ./test/summary

tools: ## install the Debian packages that tests run beside ibwarden, and fetch axe-core, which looks at the console
	@scripts/install-tools $(PACKAGES)
	@command -v npm >/dev/null || scripts/install-tools nodejs npm
	@scripts/install-axe

tools-all: tools ## install what the tests of packages need too, and make the Debian that they boot
	@scripts/install-tools $(LONG)
	@scripts/install-root

docs: ## run every command of README.md and docs, and write what it prints there
	$(GO) test -count=1 ./test/doctest -update

bin/web/node_modules: internal/web/package.json internal/web/package-lock.json
	@command -v npm >/dev/null || scripts/install-tools nodejs npm
	@mkdir -p bin/web && cp $^ bin/web
	@cd bin/web && npm ci --silent --ignore-scripts --no-audit --no-fund && touch node_modules

lint: bin/web/node_modules ## gofmt, go mod tidy, go vet, staticcheck, a build for macOS; of the console, its types and oxlint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run gofmt -w on these files'; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(GO) tool staticcheck ./...
	for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(GO) mod tidy -diff) || exit 1; done
	GOOS=darwin $(GO) build ./...
	GOOS=darwin $(GO) vet ./ib/... ./internal/app/cli
	cd internal/web && ../../bin/web/node_modules/.bin/tsc -p . && ../../bin/web/node_modules/.bin/oxlint .

# The tests that make race leaves out: long ones, whose packets take the same ways as
# those of others.
RACE_LEFT_OUT := OpenSM|NothingCrosses|CrossingIsSeen|Flood|NobodyAnswers|SilentManager|Diagnostics|UnfinishedLongRequests|UnknownIsNeverAPass|UnreadFails|^TestTorn$$|^TestKilled$$|^TestScripts$$

race: ## run tests of packages with goroutines under the race detector, but for the longest
	CGO_ENABLED=1 $(GO) test -race -short -skip '$(RACE_LEFT_OUT)' ./internal/app/daemon ./internal/link/... ./internal/simserve/... ./internal/store/... ./internal/service ./internal/api/... ./test/servicetest ./internal/app/cli
	CGO_ENABLED=1 $(GO) test -race -run '^TestScripts$$/^(apply|interrupt|story)$$' ./internal/app/cli

vulnerabilities: ## look for known vulnerabilities with govulncheck, if the network lets it
	@GO='$(GO)' scripts/vulnerabilities

fuzz: ## run every fuzz target for FUZZTIME each (default 5s)
	@scripts/fuzz-all $(FUZZTIME)

mutate: tools-all ## break every rule of docs/dev/conformance.md and write there what tests notice; a share with EVERY=10, one with RULE=PK-09
	$(GO) run ./test/mutate $(if $(RULE),-v -rule $(RULE),$(if $(EVERY),-every $(EVERY),-write))

claims: tools-all ## ask of each rule line in scenarios/ whether what is below it fails with a break of its rule; a share with EVERY=10, rules with RULE=SM
	$(GO) run ./test/mutate -stories $(if $(RULE),-v -rule $(RULE)) $(if $(EVERY),-every $(EVERY) -seed $(or $(SEED),1))

breaks: ## break N places of the service at random (default 100), the same ones for the same SEED; PACKAGES_TO_BREAK='internal/api/...' for some
	$(GO) run ./test/mutate -random $(or $(N),100) -seed $(or $(SEED),1) $(PACKAGES_TO_BREAK)

bench: tools build ## compare with OpenSM on one ibsim, in turn, and the ways to a fabric; prints ratios; then benchscale and benchservice
	@scripts/bench-opensm
	$(GO) test -run '^$$' -bench BringUp -benchtime 1x ./test/umadtest
	$(GO) test -run '^$$' -bench Cable -benchtime 10x -timeout 30m ./test/simtest
	$(GO) test -run '^$$' -bench Hardware -benchtime 1x -timeout 2h ./test/scaletest
	@$(MAKE) benchscale benchservice

benchscale: ## what bringing up 648 to 40,960 hosts takes of time and memory (part of make bench)
	$(GO) test -run '^$$' -bench 'Embedded|Memory|OverIbsim' -benchtime 1x -timeout 90m ./test/scaletest

benchservice: ## what the service costs: partitions, memberships, reads, memory, a scrape of the metrics
	$(GO) test -run '^$$' -bench Partitions -benchtime 3x ./test/servicetest
	$(GO) test -run '^$$' -bench 'Member$$|Reads' -benchtime 2000x -timeout 30m ./test/servicetest
	$(GO) test -run '^$$' -bench Revisions -benchtime 1x -timeout 30m ./test/servicetest
	$(GO) test -run '^$$' -bench Scrape -benchtime 5x ./test/servicetest

benchconsole: ## what a fabric of 16 to 40,960 hosts costs in the browser: time to the first picture, frames, memory, bytes
	$(GO) test -run '^$$' -bench 'Console|Pages' -benchtime 1x -timeout 60m ./test/consoletest

SHOTS ?= bin/console-shots
console-shots: ## screenshots of every page of the console, light and dark, at three widths, into SHOTS (default bin/console-shots), four of them into docs/images
	IBWARDEN_SCREENSHOTS='$(abspath $(SHOTS))' $(GO) test -count=1 -run '^TestShots$$' ./test/consoletest
	for x in fabric:fabric tenants:tenants move:plan why-talk:why; do cp "$(SHOTS)/$${x%:*}-light-1440.png" "docs/images/console-$${x#*:}.png"; done

soak: tools-all ## the long runs that CI takes a share of; SOAK_SEED repeats one
	@scripts/install-tools qemu-system-x86
	IBWARDEN_SOAK=1 IBWARDEN_OPENSM_CONFS=200 $(GO) test -count=1 -timeout 120m ./test/ibsimtest ./test/umadtest ./test/takeovertest ./internal/simserve/ibsimd ./internal/manager/desired/partition ./test/simtest ./internal/judge/reach ./internal/judge/isolation ./internal/lab/compare ./internal/store/... ./internal/api ./internal/app/past ./internal/resource ./test/killtest ./internal/manager/mastership ./internal/judge/certificate ./internal/simserve/guest ./test/linuxtest

clean: ## remove what was built
	rm -rf bin
