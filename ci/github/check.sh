#!/usr/bin/env bash
# Validates the fleet repository and, on a pull request, shows what it would do.
# Only what validation says decides how this ends: a preview or a comment that
# cannot be made is a warning.
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")

# no_preview REASON: says why there is none, and ends as validation did.
no_preview() {
  echo "::warning title=gitopsd::no preview of this pull request: $1"
  exit "$code"
}

# quietly COMMAND...: runs a command whose output may hold text of the pull
# request, which must not be taken for commands to the runner.
quietly() {
  local word code=0
  word=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
  echo "::stop-commands::$word"
  "$@" 2>&1 || code=$?
  echo "::$word::"
  return "$code"
}

args=(-o github)
if [ "$STRICT" = true ]; then args+=(--strict); fi
"$PROGRAM" validate "${args[@]}" -- "$DIRECTORY"
code=$?
case $code in
0) echo "valid=true" >>"$GITHUB_OUTPUT" ;;
3) echo "valid=false" >>"$GITHUB_OUTPUT" ;;
*) exit "$code" ;;
esac

if [ "$PREVIEW" != true ] || [ -z "$PULL_REQUEST" ]; then exit "$code"; fi

# The checkout is either the merge that GitHub tried, whose first parent is what
# the pull request is compared with, or what the job asked for instead. The
# commit names its parents also where they were not fetched.
head=$(git rev-parse --verify --quiet 'HEAD^{commit}') || no_preview "the workspace is no git checkout"
read -r -a parents <<<"$(git cat-file commit "$head" | sed -n '/^$/q; s/^parent //p' | tr '\n' ' ')"
if [ "${#parents[@]}" -eq 2 ] && [ "${parents[1]}" = "$PULL_REQUEST_HEAD" ]; then
  base=${parents[0]}
elif [ "$head" = "$PULL_REQUEST_HEAD" ] || [[ " ${parents[*]} " = *" $PULL_REQUEST_HEAD "* ]] ||
  git merge-base --is-ancestor "$PULL_REQUEST_HEAD" "$head" 2>/dev/null; then
  base=$(git merge-base "$PULL_REQUEST_BASE" "$head" 2>/dev/null) || base=$PULL_REQUEST_BASE
elif [ "${GITHUB_EVENT_NAME:-}" = pull_request_target ]; then
  # What was found valid is the branch itself.
  echo "::error title=gitopsd::nothing of the pull request was checked: for pull_request_target the workspace holds the branch that it is for; use on: pull_request"
  exit 1
else
  no_preview "the workspace holds neither it nor its merge"
fi
if ! git cat-file -e "$base^{commit}" 2>/dev/null; then
  git fetch --quiet --no-tags --depth=1 origin "$base" 2>/dev/null ||
    no_preview "the commit that it is compared with was not fetched; give actions/checkout fetch-depth: 2"
fi

comment="$RUNNER_TEMP/gitopsd/preview.md"
mkdir -p "$(dirname "$comment")"
rm -f "$comment"
echo "::group::preview"
quietly "$PROGRAM" plan --base "$base" --head "$head" --comment-file "$comment" -- "$DIRECTORY"
planned=$?
echo "::endgroup::"
# An invalid fleet has a preview too, which says so, and ends with 3.
if [ "$planned" -ne 0 ] && [ "$planned" -ne 3 ]; then no_preview "gitopsd plan ended with $planned; the log of this step says why"; fi
if [ ! -s "$comment" ]; then exit "$code"; fi
echo "comment-file=$comment" >>"$GITHUB_OUTPUT"
# Of an invalid fleet the summary has the problems already. Of a summary over
# 1 MiB GitHub shows nothing, and thousands of warnings may be in it.
if [ "$code" -eq 0 ]; then
  if [ $(($(wc -c <"$GITHUB_STEP_SUMMARY") + $(wc -c <"$comment"))) -le 1048576 ]; then
    cat "$comment" >>"$GITHUB_STEP_SUMMARY"
  else
    echo "the preview does not fit the summary beside the warnings; it is in the log"
  fi
fi
if [ -n "$TOKEN" ]; then bash "$here/comment.sh" "$comment"; fi
exit "$code"
