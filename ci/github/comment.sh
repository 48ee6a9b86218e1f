#!/usr/bin/env bash
# comment.sh FILE: makes a file the one comment that this author has on the pull
# request. Forks and careful jobs have tokens that may only read: whatever goes
# wrong here is one warning.
set -uo pipefail
file=$1
pull="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY"
work=$(mktemp -d "$RUNNER_TEMP/gitopsd-comment.XXXXXX")
trap 'rm -rf "$work"' EXIT

# A page of the list, and so many pages: far above what a conversation has.
per_page=100
max_pages=50

no_comment() {
  echo "::warning title=gitopsd::the preview is in the summary of this run, and not in a comment: $1"
  exit 0
}

# api METHOD URL [BODY-FILE]: leaves the answer in $work/answer. The token is
# no argument: those are for everybody on the machine to see.
api() {
  local status what=(--request "$1")
  if [ $# -gt 2 ]; then what+=(--data-binary "@$3"); fi
  status=$(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
    curl --silent --config - --max-time 30 "${what[@]}" --output "$work/answer" --write-out '%{http_code}' \
      --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' "$2") ||
    no_comment "GitHub does not answer"
  case $status in
  2??) return 0 ;;
  401) no_comment "the token is not valid (401)" ;;
  403 | 404) no_comment "the token may not do that ($status); a pull request from a fork has one that only reads, others need the permission pull-requests: write" ;;
  429) no_comment "GitHub asks for a pause (429)" ;;
  *) no_comment "GitHub answers $status" ;;
  esac
}

for program in curl jq; do
  command -v "$program" >/dev/null || no_comment "$program is not installed"
done

# A run that a newer push has overtaken has nothing to say.
api GET "$pull/pulls/$PULL_REQUEST"
if [ "$(jq -r .head.sha "$work/answer")" != "$PULL_REQUEST_HEAD" ]; then
  echo "the pull request has moved on, so this run writes no comment"
  exit 0
fi

# Of the token of a job, an App or a person: REST tells only the last who they
# are. Where nobody tells, it is that of the job.
login=$(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" |
  curl --silent --fail --config - --max-time 30 --data '{"query":"{viewer{login}}"}' "${GITHUB_GRAPHQL_URL:-}" 2>/dev/null |
  jq -r '.data.viewer.login // empty' 2>/dev/null)
author=${login:-github-actions[bot]}

# Anybody may copy the mark: who wrote the comment counts as well.
mark=$(head -n 1 "$file" | sed 's/ head=.*//')
own=""
for ((page = 1; page <= max_pages; page++)); do
  api GET "$pull/issues/$PULL_REQUEST/comments?per_page=$per_page&page=$page"
  own=$(jq -r --arg author "$author" --arg mark "$mark" \
    'map(select(.user.login == $author and (.body | startswith($mark + " ")))) | first | .id // empty' "$work/answer")
  if [ -n "$own" ] || [ "$(jq length "$work/answer")" -lt "$per_page" ]; then break; fi
done

jq --raw-input --slurp '{body: .}' "$file" >"$work/body" || no_comment "the preview cannot be sent"
if [ -z "$own" ]; then
  api POST "$pull/issues/$PULL_REQUEST/comments" "$work/body"
elif ! jq --exit-status --arg own "$own" --slurpfile new "$work/body" \
  'any(.[]; (.id | tostring) == $own and (.body | gsub("\r"; "") | rtrimstr("\n")) == ($new[0].body | rtrimstr("\n")))' \
  "$work/answer" >/dev/null; then
  api PATCH "$pull/issues/comments/$own" "$work/body"
fi
