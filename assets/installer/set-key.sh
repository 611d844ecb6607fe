# ---------------------------------------------------------------------------------------------------------------------
# Replacing the API key
#
# All selected jobs get the new key, or none does. It is first written beside the old key of each job (`api-key.next`). Then
# a rename creates the list of these jobs (`.set-key`): from then on the new key counts, and whichever process finds the list
# completes the change. Without the list the new keys are leftovers. All this happens under the lock of installations.

set_key() {
  select_jobs
  [ -n "$selected" ] || fail 1 "no jobs"
  if [ "$dry_run" = yes ]; then
    for id in $selected; do
      printf 'would replace the API key of job %s\n' "$id"
    done
    return
  fi
  read_api_key
  check_private "$jobs_root"
  check_private "$state_root"
  mkdir -p "$state_root" 2>/dev/null || fail "$exit_write" "cannot write to $state_root"
  acquire_lock "$state_root/install.lock" 300 || fail "$exit_busy" "another installation has held the lock for five minutes"
  # shellcheck disable=SC2031
  install_lock=$held_lock held_lock=''
  remove_dead_offers "$state_root/install.lock"
  finish_set_key
  select_jobs
  [ -n "$selected" ] || fail 1 "no jobs"
  make_scratch "$state_root"
  own_state_root=$state_root key_count=0 key_refusals=0
  for id in $selected; do
    key_count=$((key_count + 1))
    check_key "$id" && continue
    key_refusals=$((key_refusals + 1))
    message err "$http_failure"
  done
  job_id='' state_root=$own_state_root
  [ "$key_refusals" -eq 0 ] ||
    fail "$exit_fetch" "the new key does not work for $key_refusals of $key_count jobs; no job was changed"
  write_next_keys
  # The change ends in one way or the other.
  trap '' HUP INT TERM
  mv -f "$jobs_root/.set-key.new" "$jobs_root/.set-key" || fail "$exit_write" "cannot write to $jobs_root; no job was changed"
  undo_keys=no
  to_disk "$jobs_root"
  finish_set_key
  info "replaced the API key of $key_count jobs"
}

# check_key ID: requests each file of the job with the new key, as a run would. Nothing is downloaded if the vault still has
# the installed version. On failure sets http_failure.
check_key() {
  read_job "$1"
  job_directory=$jobs_root/$1
  check_private "$job_directory"
  # A killed installation may have left a copy of the old key, which the next run would restore.
  [ ! -d "$job_directory/old" ] || (
    # This subshell must not release the lock of installations.
    install_lock=''
    trap release_lock 0
    acquire_lock "$state_root/$1/lock" 120 || fail "$exit_busy" "a run of this job has held the lock for two minutes"
    recover_install
  ) || exit
  read_job "$1"
  is_plain "$job_directory/api-key" || fail 1 "$job_directory/api-key is not a file; remove it, and create the job again"
  check_keystore_password
  check_server "$server"
  # As in the schedule.
  unset http_proxy https_proxy all_proxy no_proxy HTTPS_PROXY ALL_PROXY NO_PROXY
  use_proxies
  choose_tool
  ca_path=$job_directory/ca.pem
  authorized=yes
  [ -z "$local_key" ] || check_sign_scope || return 1
  for line in $files; do
    ! is_local "${line%% *}" || continue
    row_etag=''
    [ ! -r "$state_root/$1/state" ] || find_row "$state_root/$1/state" "${line%% *}" "${line#* }" || row_etag=''
    try_get "/api/v1/certificates/$certificate/${line%% *}" "$scratch/body" "$row_etag" || return 1
  done
}

# Writes the new key beside the old one of each selected job, and then the list of the jobs.
write_next_keys() {
  undo_keys=yes
  for id in $selected; do
    key_path=$jobs_root/$id/api-key.next
    { cat <<EOF >"$key_path" && IFS= read -r stored_key <"$key_path" && [ "$stored_key" = "$api_key" ]; } 2>/dev/null ||
$api_key
EOF
      fail "$exit_write" "cannot write to $jobs_root/$id; no job was changed"
    to_disk "$key_path" "$jobs_root/$id"
  done
  {
    cat <<EOF >"$jobs_root/.set-key.new" && [ "$(tail -n 1 "$jobs_root/.set-key.new")" = end ]
$selected
end
EOF
  } 2>/dev/null || fail "$exit_write" "cannot write to $jobs_root; no job was changed"
  to_disk "$jobs_root/.set-key.new"
}

remove_next_keys() {
  undo_keys=no
  (set +f; rm -f "$jobs_root"/*/api-key.next "$jobs_root/.set-key.new")
}

# Completes a replacement of the key, or removes what is left of one. The caller holds the lock of installations.
finish_set_key() {
  if [ -f "$jobs_root/.set-key" ]; then
    # shellcheck disable=SC2013 # IFS is a line break
    for id in $(sed '$d' "$jobs_root/.set-key"); do
      [ ! -f "$jobs_root/$id/api-key.next" ] || {
        mv -f "$jobs_root/$id/api-key.next" "$jobs_root/$id/api-key" && to_disk "$jobs_root/$id"
      } || fail "$exit_write" "cannot replace the API key in $jobs_root/$id; the next run of a job completes it"
    done
    rm -f "$jobs_root/.set-key" || fail "$exit_write" "cannot write to $jobs_root"
  fi
  remove_next_keys
  (set +f; rm -rf "$state_root"/scratch.*)
}

# A live process that holds the lock completes the replacement itself.
recover_set_key() {
  [ -e "$jobs_root/.set-key" ] || [ -e "$jobs_root/${job_id:-none}/api-key.next" ] || return 0
  acquire_lock "$state_root/install.lock" 0 || return 0
  finish_set_key
  release_lock
}

