# `make test` and `make bench` need only Python 3.11 or newer, make and git; everything else is installed into .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Two test processes with one BLAS thread each beat one process with two.
ONE    := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: install install-browser docs test test-browser test-slow test-search test-mutation release test-native test-wheel lint bench results runtime format clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt $(wildcard src/gape/native/*.[ch]) src/gape/native/CMakeLists.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(ONE) $(BIN)/pytest -n 2

test-slow: $(STAMP)
	$(ONE) $(BIN)/pytest -n 2 -m slow

# Property tests on new random examples (`make test` draws the same ones every time).
test-search: $(STAMP)
	$(ONE) $(BIN)/pytest -n 2 --hypothesis-profile=search

# Chromium (the system's, or installed with apt if root) and Playwright, which drives it.
BROWSER := $(VENV)/.browser
install-browser: $(BROWSER)

$(BROWSER): $(STAMP)
	test -n "$$CHROMIUM" || command -v chromium > /dev/null || { test "$$(id -u)" = 0 && apt-get update -q && apt-get install -y -q --no-install-recommends chromium; }
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	touch $@

# The explorer in Chromium: pictures, links, sliders against Python, no requests.
test-browser: $(BROWSER)
	$(ONE) $(BIN)/pytest -m browser -s tests/explorer/test_browser.py

# Tests the compiled kernels: with AddressSanitizer and UBSan; the variant for processors without AVX2; the ARM variant
# under an emulator if gcc-aarch64-linux-gnu and qemu-user-static are installed. Then tests the solvers without kernels,
# as on a machine without a C compiler.
SANITIZED := build/sanitized
test-native: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(SANITIZED) \
	  --config-settings=cmake.define.GAPE_SANITIZE=ON --config-settings=cmake.build-type=RelWithDebInfo .
	$(ONE) GAPE_NATIVE=$(SANITIZED)/gape/native/libgape.so LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) \
	  ASAN_OPTIONS=detect_leaks=0 $(BIN)/pytest tests/native tests/solvers/test_edge_cases.py tests/scale/test_build.py tests/scale/test_encode.py
	$(ONE) GAPE_NATIVE=baseline $(BIN)/pytest tests/native tests/solvers/test_edge_cases.py tests/scale/test_encode.py
	$(ONE) GAPE_NATIVE=0 $(BIN)/pytest -n 2 tests/native tests/solvers tests/graph tests/encodings/test_gape.py tests/scale/test_build.py tests/scale/test_encode.py

# The documentation, in docs/_build/html; fails at a warning, an example that does not run, or a broken link between pages.
DOCS := $(VENV)/.docs
$(DOCS): $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

docs: $(DOCS)
	$(ONE) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# Builds the wheel, installs it alone into an empty environment and uses it there.
test-wheel: $(STAMP)
	$(BIN)/python tests/wheel_check.py

# Trains on CYCLES without and with encodings on a short schedule; writes a table and a page in about five minutes. Needs no data.
bench: $(STAMP)
	$(BIN)/gape bench cycles --short --encoding none,lape,rw,gape --jobs 2 --report runs/report.html

# Regenerates the tables and figures of the pages from results/.
results: $(STAMP)
	$(BIN)/python docs/tables.py
	$(BIN)/gape table --set pattern:train_fraction=0.1 --set cluster:train_fraction=0.1 --set cycles-v:data.variant=released --runs results --plot docs/graph-performance.png > /dev/null
	$(BIN)/gape figure rw-pprp -o docs/rw-pprp.png
	$(BIN)/gape figure csl-labels -o docs/csl-labels.png

runtime: $(STAMP)
	$(BIN)/gape runtime

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Builds the wheel twice and compares the bytes, writes its bill of materials, and audits the pinned versions.
release: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[proof]'
	$(BIN)/python tests/release.py

# Mutation testing: makes small changes to the code, a sample per folder, and counts those that fail a test. Takes hours.
test-mutation: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[proof]'
	$(BIN)/python tests/mutation.py --sample 30 --output mutants.jsonl

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery_built .pytest_cache .mypy_cache .ruff_cache
