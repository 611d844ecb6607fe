# ---------------------------------------------------------------------------------------------------------------------
# Installation

# Whether "$0" is the file that the shell reads, and only root or this user could have written it. Where the shell reads a
# pipe, "$0" is its own name, and a file of that name in the current directory may be of any user.
is_own_script() {
  case $- in *s*) return 1 ;; esac
  case $0 in
    /*) own_path=$0 ;;
    *) own_path=$(pwd)/$0 ;;
  esac
  [ -f "$own_path" ] && grep '^# Certificate Vault: the client\.' "$own_path" >/dev/null 2>&1 || return 1
  stat_entry "$own_path"
  case $entry_mode in
    -???????w* | -????w*) return 1 ;;
    -*) ;;
    *) return 1 ;;
  esac
  case $entry_uid in
    0) ;;
    "$my_uid") ;;
    *) return 1 ;;
  esac
  [ "$my_uid" -ne 0 ] || (walk "${own_path%/*}" check '')
}

# Saves a copy of this script for the schedule. If the script came through a pipe, downloads it again over the verified
# connection.
copy_script() {
  if is_own_script; then
    cat "$0" >"$1" || fail "$exit_write" "cannot write $1"
  else
    authorized=no
    get_with_retries /client/install.sh "$1"
  fi
  { is_whole_script "$1" && bounded sh -n "$1" 2>/dev/null; } ||
    fail "$exit_fetch" "$server/client/install.sh is not a complete installer script"
}

is_whole_script() {
  # shellcheck disable=SC2016 # the last line of this file, literally
  [ -f "$1" ] && [ "$(tail -n 1 "$1" 2>/dev/null)" = 'main "$@"' ]
}

install_job() {
  watch=$wanted_watch
  make_first_scratch
  choose_tool
  check_options
  trust_sudo_user
  choose_scheduler
  read_token
  calendar=$(cron_to_calendar "${schedule:-@daily}") || usage_error "--schedule: \"$schedule\": $calendar"
  [ -z "$ca_file" ] || { ca=yes && grep -e '-----BEGIN CERTIFICATE-----' "$ca_file" >/dev/null 2>&1; } ||
    fail 1 "--ca-file: $ca_file has no PEM certificate"
  read_keystore_password
  save_proxies
  check_private "$jobs_root"
  check_private "$state_root"
  check_destination_place check || fail "$exit_write" "$walk_problem"
  writer=''
  if [ "$dry_run" = yes ]; then
    find_job_id
    refuse_shared_files
    if [ -z "$schedule" ]; then schedule=$(job_value "$job_id" schedule); fi
    print_plan
    return
  fi
  [ -n "$enroll_token" ] || read_api_key
  ca_path=$ca_file
  [ -n "$enroll_token" ] || check_new_key
  # Everything that depends on the existing jobs happens under this lock.
  mkdir -p "$state_root" 2>/dev/null || fail "$exit_write" "cannot write to $state_root"
  acquire_lock "$state_root/install.lock" 300 || fail "$exit_busy" "another installation has held the lock for five minutes"
  # shellcheck disable=SC2031
  install_lock=$held_lock held_lock=''
  remove_dead_offers "$state_root/install.lock"
  finish_set_key
  find_job_id
  refuse_shared_files
  [ -z "$enroll_token" ] || { enroll && check_new_key; }
  job_directory=$jobs_root/$job_id
  if [ -e "$job_directory" ] && [ ! -d "$job_directory" ]; then fail "$exit_write" "$job_directory is not a directory; remove it"; fi
  finish_interrupted_run
  job_was_there=no
  [ ! -f "$job_directory/job" ] || job_was_there=yes
  find_new_directories
  undo_install=yes
  mkdir -p "$job_directory" "$state_root/$job_id" || fail "$exit_write" "cannot write to $jobs_root and $state_root"
  chmod 0700 "$jobs_root" "$job_directory" "$state_root" "$state_root/$job_id" || fail "$exit_write" "cannot protect $jobs_root"
  acquire_lock "$state_root/$job_id/lock" 120 || fail "$exit_busy" "a run of this job has held the lock for two minutes"
  recover_install
  rm -f "$state_root/$job_id/local-key/taken"
  if [ -z "$schedule" ]; then schedule=$(job_value "$job_id" schedule); fi
  cron_to_calendar "${schedule:-none}" >/dev/null || schedule=$(random_schedule)
  write_job_files
  release_lock
  # Run the same program that the schedule will run.
  CERTIFICATE_VAULT_LOCK_SECONDS=120 /bin/sh "$job_directory/install.sh" --run "$job_id" </dev/null
  first_run=$?
  case $first_run in
    0 | "$exit_reload" | "$exit_verify") ;;
    *)
      # The run has already printed the reason.
      message err "the first download failed; no job was created"
      exit "$first_run"
      ;;
  esac
  install_schedule || fail 1 "cannot install the schedule; no job was created, and the downloaded files stay"
  undo_install=no
  rm -f "$job_directory/old/.complete"
  rm -rf "$job_directory/old"
  remove_local_keys
  forget_enroll_request
  info "scheduled: $schedule ($scheduler)"
  [ -z "$watch" ] || tell_watch
  exit "$first_run"
}

check_new_key() {
  [ -z "$local_key" ] || check_sign_scope || fail "$exit_fetch" "no job was created: $http_failure"
  authorized=no
}

# The old job may have been interrupted between two renames, and only it knows the names of its files.
finish_interrupted_run() {
  if [ -f "$job_directory/job" ] && [ -e "$state_root/$job_id/swapping" ] && is_whole_script "$job_directory/install.sh"; then
    CERTIFICATE_VAULT_LOCK_SECONDS=120 /bin/sh "$job_directory/install.sh" --run "$job_id" </dev/null || :
  fi
}

# A single mv installs all files of the job, as in the destination, so that a job is never half old and half new. The old
# job stays in `old` until the first download succeeds.
write_job_files() {
  rm -rf "$job_directory/new" "$job_directory/old"
  mkdir "$job_directory/new" "$job_directory/old" || fail "$exit_write" "cannot write to $job_directory"
  ca_path=$job_directory/new/ca.pem
  { [ "$ca" = no ] || cat "$ca_file"; } >"$ca_path" || fail "$exit_write" "cannot write to $job_directory"
  [ "$ca" = no ] || cmp -s "$ca_file" "$ca_path" || fail "$exit_write" "cannot write to $job_directory"
  copy_script "$job_directory/new/install.sh"
  { write_job >"$job_directory/new/job" && [ "$(write_job | cksum)" = "$(cksum <"$job_directory/new/job")" ]; } ||
    fail "$exit_write" "cannot write to $job_directory"
  cat <<EOF >"$job_directory/new/api-key" || fail "$exit_write" "cannot write to $job_directory"
$api_key
EOF
  { IFS= read -r stored_key <"$job_directory/new/api-key" && [ "$stored_key" = "$api_key" ]; } ||
    fail "$exit_write" "cannot write to $job_directory"
  if has_keystore; then
    cat <<EOF >"$job_directory/new/keystore-password" || fail "$exit_write" "cannot write to $job_directory"
$keystore_password
EOF
    { IFS= read -r stored_key <"$job_directory/new/keystore-password" && [ "$stored_key" = "$keystore_password" ]; } ||
      fail "$exit_write" "cannot write to $job_directory"
  else
    true >"$job_directory/new/keystore-password" || fail "$exit_write" "cannot write to $job_directory"
  fi
  for part in job api-key install.sh ca.pem keystore-password; do
    is_plain "$job_directory/$part" || fail "$exit_write" "$job_directory/$part is not a file; remove it"
  done
  (cd "$job_directory/new" && chmod 0600 job api-key ca.pem keystore-password && chmod 0700 install.sh &&
    to_disk job api-key ca.pem install.sh keystore-password) ||
    fail "$exit_write" "cannot write to $job_directory"
  if [ "$job_was_there" = yes ]; then
    for part in job api-key install.sh ca.pem keystore-password; do
      [ ! -f "$job_directory/$part" ] || cp -p "$job_directory/$part" "$job_directory/old/$part" ||
        fail "$exit_write" "cannot write to $job_directory"
    done
    (set +f; to_disk "$job_directory"/old/*)
    cat <<EOF >"$job_directory/old/.complete" || fail "$exit_write" "cannot write to $job_directory"
$$ $(process_start $$)
EOF
    [ -s "$job_directory/old/.complete" ] || fail "$exit_write" "cannot write to $job_directory"
    to_disk "$job_directory/old/.complete" "$job_directory/old" "$job_directory"
  fi
  (cd "$job_directory/new" && mv -f install.sh ca.pem keystore-password api-key job ../) || fail "$exit_write" "cannot write to $job_directory"
  to_disk "$job_directory"
  rm -rf "$job_directory/new"
}

# Sets `new_directories` to the directories on the path to the destination that do not exist yet, the innermost first.
find_new_directories() {
  new_directory=$destination
  until [ -z "$new_directory" ] || [ -e "$new_directory" ] || [ -h "$new_directory" ]; do
    new_directories=$new_directories${new_directories:+$newline}$new_directory
    new_directory=${new_directory%/*}
  done
}

# Restores the previous job, or removes the new one with the directories that its first run created, if they are empty.
undo_job() {
  undo_install=no
  if [ "$job_was_there" = no ]; then
    rm -rf "$job_directory"
    if [ -e "$state_root/$job_id/local-key/requested" ]; then
      # The vault may issue for this key.
      (set +f && cd "$state_root/$job_id" && for part in *; do
        [ "$part" = local-key ] || rm -rf "$part"
      done)
      info "the private key that was generated stays in $state_root/$job_id/local-key, for the same command again"
    else
      rm -rf "${state_root:?}/$job_id"
    fi
  elif [ -s "$job_directory/old/.complete" ]; then
    restore_old_job
  fi
  rm -rf "$job_directory/new" "$job_directory/old"
  { [ -n "$new_directories" ] && [ -d "$destination" ] && check_destination_place check; } || return 0
  # shellcheck disable=SC2086 # one directory per line, to be split
  as_writer rmdir $new_directories 2>/dev/null </dev/null || :
}

print_plan() {
  if [ -f "$jobs_root/$job_id/job" ]; then plan_verb=replace; else plan_verb=create; fi
  cat <<EOF
would $plan_verb job $job_id
  server       $server
  certificate  $certificate
  destination  $destination
  files        $(show_files)${local_key:+$newline  private key  generated on this machine ($local_key)}
  schedule     ${schedule:-once a day at a random time} ($scheduler)${watch:+$newline  watch        $(watch_name)}
  reload       ${reload:-none}
  stored in    $jobs_root/$job_id and $state_root/$job_id
EOF
}

show_files() {
  for line in $files; do
    printf '%s%s -> %s' "${show_comma:-}" "${line%% *}" "${line#* }"
    show_comma=', '
  done
  show_comma=''
}

