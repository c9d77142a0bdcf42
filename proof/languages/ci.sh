# Stock gRPC clients in other languages, each with its interceptor's tests and three kills of the
# primary's node; then each of the gateway's errors at every length and alphabet. Versions stand in
# the packages' own files. A toolchain or a registry that is not there is told, and nothing fails.
languages() {
    local built="${CARGO_TARGET_DIR:-$PWD/target}/languages"
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "no Python 3.11 here: skipped"
        return
    fi
    if ! pkg-config --exists grpc++ 2>/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        { apt-get update && apt-get install --yes g++ pkg-config libgrpc++-dev; } >"$log/apt-grpc" 2>&1 || true
    fi
    timeout 420 python3 proof/languages/kills.py --kills 3 --build "$built" \
        --steadfast "${CARGO_TARGET_DIR:-target}/ci/steadfast"
    timeout 300 python3 proof/languages/errors.py --build "$built" \
        --steadfast "${CARGO_TARGET_DIR:-target}/ci/steadfast"
}
