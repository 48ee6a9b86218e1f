#!/usr/bin/env bash
# Finds the gitopsd that the check uses, or builds it from the source beside
# this script: then it is of the action's own version, whichever that is.
set -euo pipefail

failed() {
  echo "::error title=gitopsd::$1"
  exit 1
}

if [ -z "$PROGRAM" ]; then
  command -v go >/dev/null ||
    failed "the action builds gitopsd from its source, and there is no Go: run actions/setup-go before it, or name a gitopsd with the input program"

  # A tag becomes the version. The variables that should say it are empty in
  # composite actions, but the runner keeps actions in a folder by that name.
  stamp=""
  ref=$(basename "$GITHUB_ACTION_PATH")
  if [[ "$ref" =~ ^v[0-9]+\.[0-9]+\.[0-9]+([-+.0-9A-Za-z]*)$ ]]; then
    stamp="-X main.stampedVersion=$ref"
  elif [[ "$ref" =~ ^[0-9a-f]{40}$ ]]; then
    stamp="-X main.stampedRevision=$ref"
  fi

  PROGRAM="$RUNNER_TEMP/gitopsd/bin/gitopsd"
  echo "::group::build gitopsd"
  # What a job sets for Go is meant for its own module. A toolchain that is too
  # old fetches the one that go.mod names.
  (cd "$GITHUB_ACTION_PATH" &&
    CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off GOTOOLCHAIN=auto GOOS='' GOARCH='' \
      go build -trimpath -buildvcs=false -ldflags "$stamp" -o "$PROGRAM" ./cmd/gitopsd) ||
    { echo "::endgroup::" && failed "gitopsd could not be built; the log of this step says why"; }
  echo "::endgroup::"
fi

version=$("$PROGRAM" version) || failed "the program cannot be run; check the input program"
echo "$version"
echo "program=$PROGRAM" >>"$GITHUB_OUTPUT"
