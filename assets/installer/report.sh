# ---------------------------------------------------------------------------------------------------------------------
# A run: report
#
# After a run that changed something, failed, or was the first of a day, the job tells the vault what is installed. The
# report is a courtesy: its failure changes neither the run nor its exit code, and the next run sends it. The state has
# the results of the last reload (`results`), and when which exit code was last reported (`reported`).

# keep_results: saves the results of reload and verification for later reports.
keep_results() {
  {
    cat <<EOF >"$run_state/results.new" && mv -f "$run_state/results.new" "$run_state/results"
$reload_result
$reload_output
$verify_result
$verify_output
EOF
  } 2>/dev/null || :
}

# last_line FILE: prints the last line of a file that is not blank, without control characters.
last_line() {
  tail -c 2000 "$1" 2>/dev/null | tr -d '\000' | tr '\r' '\n' | bounded awk 'NF { last = $0 } END { print last }' |
    tr -d '[:cntrl:]' | cut -c 1-500
}

# report_run CODE MESSAGE NEWS: reports the run that ends with this exit code. NEWS is `yes` if the run changed something.
report_run() {
  # A job whose first download failed is not created.
  [ -n "$tool" ] && [ -n "$api_key" ] && { [ -e "$run_state/state" ] || [ -e "$run_state/pending" ]; } || return 0
  # The vault is unreachable, or does not accept the key.
  case $1-$http_status in
    "$exit_fetch-000" | "$exit_fetch-401")
      rm -f "$run_state/reported"
      return 0
      ;;
  esac
  report_now=$(date -u '+%Y-%m-%dT%H:%M:%S')
  reported_at='' reported_code=''
  [ ! -f "$run_state/reported" ] || IFS=' ' read -r reported_at reported_code <"$run_state/reported" || :
  report_times=$(cron_to_calendar "$schedule" "$(date '+%Y-%m-%dT%H:%M:%S')" "$report_now" '' "$reported_at") || return 0
  [ "$1-$3-$reported_code" != "0-no-0" ] || [ "${report_times#* }" = due ] || return 0
  # From here on, fail ends the script with the exit code of the run.
  reporting=$1
  read_results
  report_body "$1" "$2" "${report_times%% *}" >"$scratch/report.json" || return 0
  upload=$scratch/report.json upload_method=PUT upload_type=application/json authorized=yes fetch_seconds=$connect_seconds
  http_get "$(deployment_path)" "$scratch/body"
  upload='' authorized=no
  case $http_status in
    # 404: an older vault. What the vault does not accept today, it may accept tomorrow.
    2?? | 40[0-7] | 409 | 41?)
      {
        cat <<EOF >"$run_state/reported.new" && mv -f "$run_state/reported.new" "$run_state/reported"
$report_now $1
EOF
      } 2>/dev/null || :
      ;;
    *) rm -f "$run_state/reported" ;;
  esac
}

# Prints the path at which the vault takes the reports of the job.
deployment_path() {
  echo "/api/v1/certificates/$certificate/deployments/$job_id.$(uname -n | cksum | cut -d ' ' -f 1)"
}

# Keeps what report_removal needs of the files of the job.
prepare_removal() {
  for part in api-key ca.pem; do
    is_plain "$jobs_root/$job_id/$part" || return 0
  done
  [ -f "$jobs_root/$job_id/api-key" ] || return 0
  [ "$ca" = no ] || cp "$jobs_root/$job_id/ca.pem" "$scratch/ca.pem" 2>/dev/null || return 0
  IFS= read -r api_key <"$jobs_root/$job_id/api-key" || api_key=''
}

# Tells the vault that the job was removed, so that it does not become silent there.
report_removal() {
  [ -n "$api_key" ] || return 0
  # From here on, fail ends the script with 0: the job is removed.
  reporting=0
  check_server "$server"
  ca_path=$scratch/ca.pem
  choose_tool
  use_proxies
  true >"$scratch/report.json" || return 0
  upload=$scratch/report.json upload_method=DELETE upload_type=application/json authorized=yes fetch_seconds=$connect_seconds
  http_get "$(deployment_path)" "$scratch/body"
  upload='' authorized=no
  case $http_status in
    # 404: the job never reported, or this is an older vault.
    2?? | 404) ;;
    *) warn "the vault still lists the job, because the request to delete it failed (status $http_status)
Try: vault fleet forget --certificate $certificate --host $(uname -n)" ;;
  esac
}

# Reads the results of the last reload, unless this run has some.
read_results() {
  [ -z "$reload_result$verify_result" ] && [ -f "$run_state/results" ] || return 0
  {
    IFS= read -r reload_result && IFS= read -r reload_output && IFS= read -r verify_result &&
      IFS= read -r verify_output
  } <"$run_state/results" || :
}

# report_body CODE MESSAGE NEXT: prints the report.
report_body() {
  report_error=''
  case $1 in
    0 | "$exit_reload" | "$exit_verify") ;;
    *) report_error=$2 ;;
  esac
  report_version=$(shown_version)
  report_leaf=$(first_leaf)
  report_print=''
  if [ "$has_openssl" = yes ] && [ -n "$disk" ] && [ -n "$report_leaf" ] && [ -f "$disk/$report_leaf" ]; then
    report_print=$(fingerprint <"$disk/$report_leaf" | sed 's/^.*=//' | tr -d ':' | tr 'A-F' 'a-f')
    case $report_print in *[!0-9a-f]*) report_print='' ;; esac
    [ "${#report_print}" -eq 64 ] || report_print=''
  fi
  case $report_version in *[!0-9]*) report_version='' ;; esac
  cat <<EOF
{"host": $(json_text "$(uname -n)"), "job": $(json_text "$job_id"), "destination": $(json_text "$destination"),
"version": ${report_version:-null}, "fingerprint_sha256": $(json_text_or_null "$report_print"),
"reload": $(report_step "$reload" "$reload_result" "$reload_output"),
"verify": $(report_step "$verify" "$verify_result" "$verify_output"),
"error": $(json_text_or_null "$report_error"), "next_run_at": $(json_text_or_null "$3"),
"client_version": $(json_text_or_null "$client_version")}
EOF
}

# report_step COMMAND RESULT OUTPUT: prints a step that the job has, and that has run.
report_step() {
  case ${1:+job}-$2 in
    job-ok | job-failed) printf '{"result": "%s", "output": %s}\n' "$2" "$(json_text_or_null "$3")" ;;
    *) echo null ;;
  esac
}

# json_text TEXT: prints the first line of a text as JSON, at most 500 characters, with a question mark for each byte that is
# not printable ASCII.
json_text() {
  tr -c '\012 -~' '?' <<EOF | sed -n '1p' | cut -c 1-500 | sed 's/["\\]/\\&/g; s/^/"/; s/$/"/'
$1
EOF
}

json_text_or_null() {
  if [ -n "$1" ]; then json_text "$1"; else echo null; fi
}

