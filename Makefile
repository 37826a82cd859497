# openipu.pod: two commands are all a newcomer needs, `make bring-up` and `make test`.
SHELL := /bin/sh
BIN := .venv/bin
INVENTORY ?= inventory/twin/pod.yml
export PATH := $(CURDIR)/$(BIN):$(PATH)
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg

.DEFAULT_GOAL := help
.PHONY: help venv bring-up twin-up twin-down test static test-oldest lint types sanity unit integration ansible-lint docs test-browser test-peers openstack-up openstack-down test-openstack test-roles rack-rehearsal bench bench-openstack soak proto format lock build clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

.venv/.ready: requirements/dev.txt requirements/bootstrap.txt pyproject.toml tools/bootstrap.sh
	@tools/bootstrap.sh

venv: .venv/.ready ## make .venv from the locked requirements

twin-up: venv ## start the rack twin on loopback
	@twin up --inventory $(INVENTORY)

bring-up: twin-up ## start the twin and take it to running partitions with playbooks/site.yml
	@ansible-playbook playbooks/site.yml -i $(INVENTORY)
	@twin status
	@echo "A picture:    $(dir $(INVENTORY))rack-report.html"

twin-down: venv ## stop the twin and leave nothing behind
	@twin down
	@rm -f $(dir $(INVENTORY))rack-report.html

test: venv ## everything that needs only Python
	@tools/test.sh

static: lint types ansible-lint sanity docs ## what needs no server: style, types, sanity, documentation

test-oldest: venv ## a part of the tests with the oldest releases that are allowed, ansible-core 2.18 among them
	tools/oldest.sh

lint: venv ## style, stale contracts, changelog
	ruff check .
	ruff format --check .
	yamllint --strict .
	python tools/contract.py --check
	antsibull-changelog lint

types: venv ## mypy, strict
	mypy src/openipu plugins/module_utils tools/commandline.py tools/openstack tools/hosts tools/guest tools/rehearsal

unit: venv ## unit and property tests
	pytest tests/unit -n 2

integration: venv ## controller, agents, command lines, modules and playbooks against a twin
	pytest tests/integration -n 3 --dist loadscope

test-browser: venv ## the rack report in a real browser (needs chromium)
	@command -v chromium >/dev/null || { echo "Chromium is not installed: apt install --no-install-recommends chromium fonts-dejavu-core" >&2; exit 1; }
	uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/browser.txt
	pytest tests/browser -n 0

PEERS := .cache/peers
$(PEERS)/.ready: requirements/peers.txt | .venv/.ready
	rm -rf $(PEERS)
	uv pip install --quiet --no-deps --require-hashes --target $(PEERS) -r requirements/peers.txt
	touch $@

REDFISH := .cache/redfish
$(REDFISH)/.ready: requirements/redfish.txt | .venv/.ready
	@uv venv --quiet --clear --python $(BIN)/python $(REDFISH)
	@uv pip sync --quiet --python $(REDFISH)/bin/python --require-hashes requirements/redfish.txt
	@touch $@

test-peers: venv $(PEERS)/.ready $(REDFISH)/.ready ## programs that nobody here wrote: arista.eos, Net-SNMP (apt install snmp) and Prometheus against the twin, our modules against a BMC
	pytest tests/peers -n 2 --dist loadscope

OPENSTACK := .cache/openstack/venv
$(OPENSTACK)/.ready: requirements/openstack.txt | .venv/.ready
	@echo "Installing OpenStack in $(OPENSTACK) …"
	@uv venv --quiet --clear --python $(BIN)/python $(OPENSTACK)
	@uv pip sync --quiet --compile-bytecode --python $(OPENSTACK)/bin/python --require-hashes requirements/openstack.txt
	@touch $@

openstack-up: venv $(OPENSTACK)/.ready ## start a real OpenStack on loopback (needs mariadb-server and rabbitmq-server)
	@python -m tools.openstack up

openstack-down: venv ## end it and leave nothing behind
	@python -m tools.openstack down

KOLLA := .cache/kolla
$(KOLLA)/.ready: requirements/kolla.txt | .venv/.ready
	@rm -rf $(KOLLA)
	@uv pip install --quiet --no-deps --require-hashes --target $(KOLLA) -r requirements/kolla.txt
	@touch $@

PEERS_OPENSTACK := .cache/peers-openstack
$(PEERS_OPENSTACK)/.ready: requirements/peers-openstack.txt | .venv/.ready
	@uv venv --quiet --clear --python $(BIN)/python $(PEERS_OPENSTACK)
	@uv pip sync --quiet --python $(PEERS_OPENSTACK)/bin/python --require-hashes requirements/peers-openstack.txt
	@touch $@

test-openstack: venv $(OPENSTACK)/.ready $(KOLLA)/.ready $(PEERS)/.ready $(PEERS_OPENSTACK)/.ready ## against that OpenStack, which is started when it does not run
	@python -m tools.openstack prepare
	pytest tests/openstack -n 0

bench-openstack: venv $(OPENSTACK)/.ready $(PEERS)/.ready $(PEERS_OPENSTACK)/.ready ## the figures of Neutron beside openstack.cloud
	python -m tests.benchmark.neutron

ROLE ?=
test-roles: venv ## the scenarios of the roles, or of ROLE=…, on real systemd hosts (root; installs podman and what else it needs)
	@python -m tools.hosts install && python -m tools.guest install
	@python -m tools.hosts up --state-dir $(CURDIR)/.cache/hosts/tests
	@pytest tests/roles -n 2 --dist worksteal --durations=0 -k "$(ROLE)"; \
	  status=$$?; python -m tools.hosts down --state-dir $(CURDIR)/.cache/hosts/tests; exit $$status

rack-rehearsal: venv $(PEERS)/.ready ## site.yml from bare hosts to a watched rack, and again without a change (root; as test-roles)
	@python -m tools.hosts install
	@python -m tools.rehearsal

ansible-lint: venv ## playbooks and roles, production profile
	@tools/unless_passed.sh ansible-lint --offline --profile production

sanity: venv ## ansible-test sanity on the built collection, with no ignore entries
	@tools/unless_passed.sh python tools/sanity.py

docs: venv ## build the module documentation and check it
	@tools/unless_passed.sh tools/docs.sh

bench: venv $(PEERS)/.ready ## every speed figure beside its peer, measured in one run
	python -m tests.benchmark

soak: venv ## the long tests: a hundred rounds of kill -9
	pytest tests/soak -m soak --timeout 1800

proto: venv ## generate the contract modules from proto/
	python tools/contract.py

format: venv ## format the sources
	ruff check --fix .
	ruff format .

lock: ## renew the locked requirements
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/bootstrap.in -o requirements/bootstrap.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --extra twin pyproject.toml requirements/dev.in -o requirements/dev.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" --constraint requirements/dev.txt pyproject.toml -o roles/openipu/files/requirements.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/browser.in -o requirements/browser.txt
	.venv/bin/uv pip compile --quiet --upgrade --no-deps --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/peers.in -o requirements/peers.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/openstack.in -o requirements/openstack.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/peers-openstack.in -o requirements/peers-openstack.txt
	.venv/bin/uv pip compile --quiet --upgrade --no-deps --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/kolla.in -o requirements/kolla.txt
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	  --custom-compile-command "make lock" requirements/redfish.in -o requirements/redfish.txt

build: venv ## the collection's archive, which carries the wheel, and the wheel, in dist/
	@rm -f roles/openipu/files/openipu-*.whl
	uv build --wheel --no-build-isolation --quiet --out-dir dist .
	cp "dist/openipu-$$(hatchling version)-py3-none-any.whl" roles/openipu/files/
	ansible-galaxy collection build --force --output-path dist .
	@rm -f roles/openipu/files/openipu-*.whl

clean: ## remove what the tools leave, but not .venv
	@if [ -d .cache/openstack/cloud ]; then python -m tools.openstack down; fi
	@for state in rig tests; do if [ -d .cache/hosts/$$state ]; then python -m tools.hosts down --state-dir .cache/hosts/$$state; fi; done
	rm -rf .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist docs/build
