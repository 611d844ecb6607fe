# ---------------------------------------------------------------------------------------------------------------------
# Managing jobs

# Sets `selected` to the ids of the selected jobs.
select_jobs() {
  selected=$(matching_jobs)
  [ -n "$selected" ] || [ -z "$wanted_job$certificate$destination" ] || fail 1 "no job matches; use --list to see all jobs"
}

list_jobs() {
  for id in $(matching_jobs); do
    printf '%s\t%s\t%s\t%s\t%s\n' "$id" "$(job_value "$id" certificate)" "$(job_value "$id" server)" \
      "$(job_value "$id" destination)" "$(job_value "$id" schedule)"
  done
}

show_status() {
  select_jobs
  [ -n "$selected" ] || info "no jobs"
  worst_status=0
  for id in $selected; do
    # An unreadable job exits only this subshell. status_of runs in the main shell, where time limits work.
    if (read_job "$id"); then status_of "$id" || worst_status=1; else worst_status=1; fi
  done
  return "$worst_status"
}

status_of() {
  read_job "$1"
  run_directory=$state_root/$1
  job_directory=$jobs_root/$1
  scratch=''
  last=''
  if is_plain "$run_directory/last-run"; then last=$(cat "$run_directory/last-run" 2>/dev/null) || last=''; fi
  last_code=${last#* }
  last_code=${last_code%% *}
  status_leaf=$(first_leaf)
  status_code=0
  disk=$destination
  # openssl would wait forever on a pipe in place of the certificate.
  if ! check_files || [ ! -f "$disk/$status_leaf" ]; then
    status_leaf=''
  fi
  cat <<EOF
$1
  server       $server
  certificate  $certificate
  destination  $destination
  files        $(show_files)
  schedule     $schedule ($scheduler)
  reload       ${reload:-none}${watch:+$newline  watch        $(watch_name)}${local_key:+$newline  private key  generated on this machine ($local_key)}
  version      $(shown_version)
  expires      $([ -z "$status_leaf" ] || bounded openssl x509 -noout -enddate -in "$disk/$status_leaf" 2>/dev/null </dev/null | sed 's/^notAfter=//')
  last run     ${last:-never}
EOF
  [ -z "$proxies" ] || printf '  proxies      %s\n' "$(printf '%s\n' "$proxies" | sed 's|//[^/]*@|//|' | tr '\n' ' ')"
  if [ -e "$run_directory/pending" ]; then
    printf '  pending      reload not successful yet\n'
    status_code=1
  fi
  [ "$last_code" = 0 ] || status_code=1
  find_problems
  [ -z "$scratch" ] || rm -rf "$scratch"
  return "$status_code"
}

# The version on disk, which is that of the last successful run or, if only its reload failed, that of the last run.
shown_version() {
  shown_rows=$run_directory/state
  [ ! -f "$run_directory/pending" ] || ! disk_is "$run_directory/pending" || shown_rows=$run_directory/pending
  [ ! -f "$shown_rows" ] || cut -f 1 "$shown_rows" 2>/dev/null | head -n 1
}

problem() {
  cat <<EOF
  problem      $1
EOF
  status_code=1
}

# Whether a run would accept the destination. Root reads the owner's directory as the owner.
check_files() {
  if [ "$my_uid" -eq 0 ] && [ -n "$owner" ]; then make_first_scratch; fi
  check_destination_place check || return 1
  [ -n "$writer" ] || return 0
  disk=$scratch/disk
  mkdir "$disk" && read_disk
}

# Prints problems that would make the next run fail, and changes since the last run.
find_problems() {
  [ -z "$walk_problem" ] || problem "${walk_problem%%"$newline"*}"
  for line in $files; do
    output=${line#* }
    if [ -e "$disk/$output" ] && [ ! -f "$disk/$output" ]; then
      problem "$destination/$output is not a file; remove it"
    elif [ ! -f "$disk/$output" ]; then
      problem "$destination/$output is missing; --run restores it"
    elif [ -h "$disk/$output" ]; then
      problem "$destination/$output is a link; --run replaces it"
    elif ! [ -s "$disk/$output" ] && [ "${line%% *}" != chain.crt ]; then
      problem "$destination/$output is empty; --run restores it"
    elif [ -f "$run_directory/state" ] && [ -r "$disk/$output" ] && [ ! -e "$run_directory/pending" ]; then
      if find_row "$run_directory/state" "${line%% *}" "$output" && [ "$row_sum" != "$(checksum "$disk/$output")" ]; then
        problem "$destination/$output was changed after it was installed; --run restores it"
      fi
    fi
  done
  if [ -n "$status_leaf" ] && bounded openssl x509 -noout -in "$disk/$status_leaf" >/dev/null 2>&1 </dev/null; then
    bounded openssl x509 -noout -checkend 0 -in "$disk/$status_leaf" >/dev/null 2>&1 </dev/null || problem "the certificate has expired"
  fi
  for line in $files; do
    { [ -f "$run_directory/state" ] && find_row "$run_directory/state" "${line%% *}" "${line#* }"; } || {
      [ -e "$run_directory/pending" ] || problem "$run_directory/state does not list all files; --run downloads them again"
      break
    }
  done
  [ -z "$local_key" ] || find_key_problems
  [ ! -e "$run_directory/swapping" ] || problem "a run was interrupted while it replaced files; --run fixes this"
  [ ! -e "$jobs_root/.set-key" ] || is_lock_live "$(cat "$state_root/install.lock" 2>/dev/null)" ||
    problem "a replacement of the API key was interrupted; --run completes it"
  [ ! -s "$job_directory/old/.complete" ] || is_lock_live "$(cat "$job_directory/old/.complete")" ||
    problem "an installation was interrupted; --run fixes this"
  for part in state pending swapping lock; do
    is_plain "$run_directory/$part" || problem "$run_directory/$part is not a file; remove it"
  done
  { [ -s "$job_directory/api-key" ] && [ -f "$job_directory/api-key" ]; } ||
    problem "$job_directory/api-key is missing or empty; create the job again"
  [ "$ca" = no ] || { [ -s "$job_directory/ca.pem" ] && [ -f "$job_directory/ca.pem" ]; } ||
    problem "$job_directory/ca.pem is missing or empty; create the job again"
  for part in "$client_cert" "$client_key"; do
    [ -z "$part" ] || [ -f "$part" ] || problem "$part, which the job presents, is missing"
  done
  ! has_keystore || { [ -s "$job_directory/keystore-password" ] && [ -f "$job_directory/keystore-password" ]; } ||
    problem "$job_directory/keystore-password is missing or empty; create the job again"
  is_whole_script "$job_directory/install.sh" ||
    problem "$job_directory/install.sh is missing or damaged; create the job again"
  [ -z "$watch" ] || [ -n "$(find_watcher)" ] || problem "no process watches the vault; $(watch_fix)"
  is_scheduled || problem "the schedule is missing in $scheduler; create the job again"
  case $last in
    '') ;;
    *)
      overdue=$(cron_to_calendar "$schedule" "$(date '+%Y-%m-%dT%H:%M:%S')" "$(date -u '+%Y-%m-%dT%H:%M:%S')" "${last%% *}")
      [ "$overdue" = 'in time' ] || problem "the job missed its last two scheduled runs; is $scheduler running?"
      ;;
  esac
}

# The installed certificate must have its key, in the job's state and not only in the destination.
find_key_problems() {
  local_directory=$run_directory/local-key
  [ "$has_openssl" = yes ] || { openssl version >/dev/null 2>&1 </dev/null && has_openssl=yes; }
  if [ "$has_openssl" = no ]; then
    problem "--local-key needs the openssl program, which is not installed"
    return
  fi
  for part in current.pem next.pem; do
    is_plain "$local_directory/$part" || problem "$local_directory/$part is not a file; remove it"
  done
  if [ ! -f "$local_directory/current.pem" ] || [ -z "$(public_part "$local_directory/current.pem")" ]; then
    [ -f "$local_directory/next.pem" ] ||
      problem "$local_directory/current.pem, the private key, is missing or damaged; --run requests a certificate for a new one"
  fi
  [ ! -e "$local_directory/requested" ] ||
    printf '  pending      the certificate for the next private key has been requested\n'
}

# Several jobs run in separate processes, as in the schedule, because a run exits with its own code.
run_jobs() {
  recover_set_key
  select_jobs
  worst=0
  case $selected in
    '') fail 1 "no jobs" ;;
    *"$newline"*)
      [ -z "$wanted_watch" ] || usage_error "--watch is for one job; select one: $(printf '%s' "$selected" | tr '\n' ' ')"
      for id in $selected; do
        if ! is_whole_script "$jobs_root/$id/install.sh"; then
          message err "$jobs_root/$id/install.sh is missing or damaged; create the job again"
          worst=1
          continue
        fi
        /bin/sh "$jobs_root/$id/install.sh" --run "$id" </dev/null || worst=$?
      done
      ;;
    *) if [ -n "$wanted_watch" ]; then watch_job "$selected"; else run_job "$selected"; fi ;;
  esac
  return "$worst"
}

uninstall_jobs() {
  select_jobs
  case $selected in
    '') fail 1 "no job matches" ;;
    *"$newline"*) usage_error "several jobs match; select one: $(printf '%s' "$selected" | tr '\n' ' ')" ;;
  esac
  read_job "$selected"
  if [ "$dry_run" = yes ]; then
    printf 'would remove job %s, its schedule and its API key; the files in %s would stay\n' "$job_id" "$destination"
    return
  fi
  check_private "$jobs_root/$job_id"
  check_private "$state_root/$job_id"
  make_first_scratch
  mkdir -p "$state_root/$job_id" || fail "$exit_write" "cannot write to $state_root"
  acquire_lock "$state_root/install.lock" 300 || fail "$exit_busy" "another installation has held the lock for five minutes"
  # shellcheck disable=SC2031
  install_lock=$held_lock held_lock=''
  finish_set_key
  acquire_lock "$state_root/$job_id/lock" 120 || fail "$exit_busy" "a run of this job has held the lock for two minutes"
  remove_schedule || fail 1 "cannot remove the schedule ($scheduler); the job stays in $jobs_root/$job_id"
  stage_path=$destination/.vault-staging-$job_id
  # Leaves directories that are no longer ours, with a warning.
  if [ -d "$destination" ] && check_destination_place check; then
    remove_directory "$stage_path" || warn "$walk_problem"
    remove_old_version
  fi
  prepare_removal
  watcher=$(find_watcher)
  rm -rf "${jobs_root:?}/$job_id" || fail "$exit_write" "cannot remove $jobs_root/$job_id"
  # A supervisor that starts it again finds no job.
  [ -z "$watcher" ] || kill -s TERM "$watcher" 2>/dev/null || :
  rm -rf "${state_root:?}/$job_id" || fail "$exit_write" "cannot remove $state_root/$job_id"
  held_lock=''
  release_install_lock
  info "removed the job; the files in $destination stay"
  report_removal
}

