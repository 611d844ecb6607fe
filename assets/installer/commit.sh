# ---------------------------------------------------------------------------------------------------------------------
# A run: reload, verify, commit

reload_and_verify() {
  if [ -n "$reload" ]; then
    # Runs in its own shell, in /, with its output captured for the error message.
    (cd / && umask "$umask_before" && unset LC_ALL && unset_proxies && exec sh -c "$reload") </dev/null >"$scratch/reload.log" 2>&1 &
    limited=$!
    wait_limited "$reload_seconds"
    reload_status=$?
    if [ "$reload_status" -ne 0 ]; then
      tail -n 20 "$scratch/reload.log" >&2
      reload_result=failed reload_output=$(last_line "$scratch/reload.log") verify_result='' verify_output=''
      keep_results
      [ "$reload_status" -ne 124 ] ||
        fail "$exit_reload" "the reload command timed out after $reload_seconds seconds; the next run retries it"
      fail "$exit_reload" "the reload command failed with exit code $reload_status; the next run retries it"
    fi
    reload_result=ok reload_output=$(last_line "$scratch/reload.log")
  fi
  [ -z "$verify" ] || verify_served
  keep_results
}

# Retries, because services take a moment to load the new certificate.
verify_served() {
  own_fingerprint=$(fingerprint <"$disk/$(first_leaf)")
  verify_count=0
  while :; do
    served_certificate
    served_fingerprint=$(fingerprint <"$scratch/served")
    if [ "$served_fingerprint" = "$own_fingerprint" ]; then
      verify_result=ok verify_output="$verify serves the new certificate"
      return 0
    fi
    verify_count=$((verify_count + 1))
    [ "$verify_count" -lt "$verify_tries" ] || break
    sleep 1
  done
  verify_result=failed verify_output="$verify is unreachable or does not speak TLS"
  [ -z "$served_fingerprint" ] || verify_output="$verify does not serve the new certificate"
  keep_results
  fail "$exit_verify" "$verify_output; the next run retries the reload and the check"
}

fingerprint() {
  bounded openssl x509 -noout -fingerprint -sha256 2>/dev/null
}

# Connects with the server name HOST, or with the first name in the certificate if HOST is not a DNS name.
served_certificate() {
  verify_name=${verify%:*}
  case $verify_name in
    *[!0-9.]*.*) ;;
    *)
      verify_name=$(bounded openssl x509 -noout -text -in "$disk/$(first_leaf)" 2>/dev/null </dev/null |
        bounded sed -n 's/.*DNS:\([^, ]*\).*/\1/p' | head -n 1)
      case $verify_name in '*.'*) verify_name=www.${verify_name#??} ;; esac
      ;;
  esac
  set -- -connect "$verify"
  [ -z "$verify_name" ] || set -- "$@" -servername "$verify_name"
  # Protocols that use STARTTLS.
  case ${verify##*:} in
    25 | 587) set -- "$@" -starttls smtp ;;
    110) set -- "$@" -starttls pop3 ;;
    143) set -- "$@" -starttls imap ;;
    21) set -- "$@" -starttls ftp ;;
    389) set -- "$@" -starttls ldap ;;
    3306) set -- "$@" -starttls mysql ;;
    5432) set -- "$@" -starttls postgres ;;
    5222) set -- "$@" -starttls xmpp ;;
  esac
  limited_download "$connect_seconds" openssl s_client "$@" </dev/null >"$scratch/served" 2>/dev/null
}

# commit ROWS: saves the state. Only after reload and verification, or a failed reload would never be retried.
commit() {
  cmp -s "$1" "$run_state/state" || replace_state "$1" "$run_state/state"
  rm -f "$run_state/pending"
  remove_old_version
}

# Removes what an interrupted version 0.1.0 left in the destination.
remove_old_version() {
  remove_directory "$destination/.vault-previous-$job_id" || warn "$walk_problem"
}

# record_run CODE MESSAGE: records the result of a run for --status.
record_run() {
  {
    cat <<EOF >"$run_state/last-run.new" && mv -f "$run_state/last-run.new" "$run_state/last-run"
$(date -u '+%Y-%m-%dT%H:%M:%SZ') $1 $2
EOF
  } 2>/dev/null || :
}

# make_scratch DIRECTORY: creates a scratch directory in it, with an unpredictable name.
make_scratch() {
  mkdir -p "$1" 2>/dev/null || fail "$exit_write" "cannot create the directory $1"
  scratch_name=$(od -A n -N 4 -t x4 /dev/urandom 2>/dev/null)
  IFS=' '
  # shellcheck disable=SC2086 # od may print blanks on both sides
  set -- "$1" $scratch_name
  IFS=$newline
  scratch_name=scratch.$$.${2-}
  mkdir "$1/$scratch_name" || fail "$exit_write" "cannot write to $1"
  scratch=$1/$scratch_name
}

# Without a job, temporary files are in TMPDIR, except that root does not use a directory of another user.
make_first_scratch() {
  if [ "$my_uid" -eq 0 ]; then
    walk "${TMPDIR:-/tmp}/certificate-vault" check '' || TMPDIR=/tmp
  fi
  make_scratch "${TMPDIR:-/tmp}"
}

# The job's files must be regular files.
check_state_files() {
  for part in state pending swapping last-run results reported; do
    is_plain "$run_state/$part" || fail "$exit_write" "$run_state/$part is not a file; remove it, and run the job again"
  done
  for part in job api-key ca.pem install.sh keystore-password; do
    is_plain "$job_directory/$part" || fail 1 "$job_directory/$part is not a file; remove it, and create the job again"
  done
}

# Replacing a job keeps the old one until the first download succeeds. If that installation was killed, restores the old
# job, because the new one may not work. If the mark (`old/.complete`) is empty, the installation had not yet begun to
# replace the job.
recover_install() {
  [ -d "$job_directory/old" ] || return 0
  installer=''
  if is_plain "$job_directory/old/.complete"; then installer=$(cat "$job_directory/old/.complete" 2>/dev/null) || installer=''; fi
  if [ -n "$installer" ]; then
    ! is_lock_live "$installer" || return 0
    warn "an installation of this job was interrupted; restored the previous job"
    restore_old_job || fail "$exit_write" "cannot write to $job_directory"
  fi
  rm -rf "$job_directory/old" "$job_directory/new"
}

restore_old_job() {
  (set +f && cd "$job_directory/old" && mv -f ./* ../) && to_disk "$job_directory" && rm -rf "$job_directory/old"
}

check_keystore_password() {
  ! has_keystore || { [ -s "$job_directory/keystore-password" ] && [ -f "$job_directory/keystore-password" ]; } ||
    fail 1 "$job_directory/keystore-password is missing or empty; create the job again with --keystore-password-file"
}

run_job() {
  read_job "$1"
  job_directory=$jobs_root/$job_id
  run_directory=$state_root/$job_id
  mkdir -p "$run_directory" || fail "$exit_write" "cannot create the directory $run_directory"
  check_private "$jobs_root/$job_id"
  check_private "$run_directory"
  recover_set_key
  acquire_lock "$run_directory/lock" "$lock_seconds" || fail "$exit_busy" "another run of this job is in progress"
  recover_install
  read_job "$1"
  run_state=$run_directory
  # Remove what a killed run left behind, which may include keys.
  (set +f; rm -rf "$run_state"/scratch.* "$run_state"/*.new)
  remove_dead_offers "$run_state/lock"
  make_scratch "$run_state"
  check_state_files
  check_server "$server"
  choose_tool
  { IFS= read -r api_key <"$job_directory/api-key" && [ -n "$api_key" ]; } ||
    fail 1 "$job_directory/api-key is missing or damaged; create the job again"
  ca_path=$job_directory/ca.pem
  [ "$ca" = no ] || [ -s "$ca_path" ] || fail 1 "$ca_path is missing or empty; create the job again with --ca-file"
  check_keystore_password
  check_client_certificate
  use_proxies
  make_staging
  if [ -e "$run_state/pending" ]; then cp "$run_state/pending" "$scratch/pending.before" || scratch_full; fi
  [ -z "$local_key" ] || prepare_local_key
  fetch_all
  refresh_ca
  check_all
  find_changes
  [ -z "$changed" ] || swap
  [ -z "$local_key" ] || promote_local_key
  if [ -n "$changed" ] || [ -e "$run_state/pending" ]; then
    reload_and_verify
    outcome="version $pinned is installed in $destination" news=yes
    commit "$scratch/next"
    info "$outcome"
  else
    outcome="unchanged, version $pinned" news=no
    commit "$scratch/next"
    info_quiet "$outcome"
  fi
  remove_local_keys
  [ -z "$late_failure" ] || fail "$exit_fetch" "$outcome, but its renewal with a new private key failed: $late_failure"
  record_run 0 "$outcome"
  report_run 0 "$outcome" "$news"
}

