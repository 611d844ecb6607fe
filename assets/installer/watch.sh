# ---------------------------------------------------------------------------------------------------------------------
# Watching
#
# With --watch, a service keeps one conditional request open (`?wait=`), to which the vault responds when there is another
# version; then the service starts a run of the job, as the schedule does. Its request is a HEAD: it transfers no key, and
# only the run downloads. The service outlives everything but its job: after an error it waits and sends the next request.

# In seconds: the longest pause after errors, between requests to a vault that cannot hold them, and that a vault can ask for.
longest_pause=900
unheld_pause=900
longest_retry_after=3600

# The longest wait that the vault accepts.
longest_wait=300

# Waits that the vault holds before shortened ones grow.
enough_held=50

# watch_job ID: watches until a signal ends it, or the job is gone.
watch_job() {
  read_job "$1"
  job_directory=$jobs_root/$job_id
  watch_directory=$state_root/$job_id/watch
  check_private "$job_directory"
  mkdir -p "$watch_directory" || fail "$exit_write" "cannot create the directory $watch_directory"
  check_private "$watch_directory"
  acquire_lock "$watch_directory/lock" "$lock_seconds" || fail "$exit_busy" "another process watches the vault for this job"
  # Other places are emptied by each run and each installation.
  (set +f; rm -rf "$watch_directory"/scratch.*)
  remove_dead_offers "$watch_directory/lock"
  make_scratch "$watch_directory"
  watch_script=$(checksum "$job_directory/install.sh")
  [ "$watch_seconds" -ge 1 ] || watch_seconds=1
  [ "$watch_seconds" -le "$longest_wait" ] || watch_seconds=$longest_wait
  watch_wait=$watch_seconds watch_shortest=$watch_seconds watch_cuts=0 watch_held=0
  watch_delay=0 watch_failure='' watch_unheld=no
  usual_fetch_seconds=$fetch_seconds
  # A clock that looks each second would be most of the work of this service.
  clock_step=10
  info "watching certificate \"$certificate\" at $server"
  while :; do
    watch_pause=0
    watch_once
    [ "$watch_pause" -eq 0 ] || pause "$watch_pause"
  done
}

# One request and what follows from it. Sets watch_pause. The job, its API key and this script may have been replaced.
watch_once() {
  unset_proxies
  read_job "$job_id"
  if [ "$(checksum "$job_directory/install.sh")" != "$watch_script" ] && is_whole_script "$job_directory/install.sh"; then
    rm -rf "$scratch"
    release_lock
    exec /bin/sh "$job_directory/install.sh" --run "$job_id" --watch
  fi
  IFS= read -r api_key <"$job_directory/api-key" || api_key=''
  check_server "$server"
  choose_tool
  ca_path=$job_directory/ca.pem
  check_client_certificate
  use_proxies
  choose_watched
  ask_vault "?wait=$watch_wait"
  # Older vaults reject the parameter.
  is_held=yes
  [ "$http_status" != 400 ] || { is_held=no && ask_vault ''; }
  case $http_status in
    304) watch_unchanged ;;
    200) watch_news ;;
    *) watch_error ;;
  esac
}

# Sets watch_artifact and watch_etag to a file of the job and its installed version: to a public one, if there is one. With a
# local key, that is the full chain, which each run requests.
choose_watched() {
  watch_artifact='' watch_output='' watch_etag=''
  if [ -n "$local_key" ]; then
    watch_artifact=fullchain.crt
    row_file=$state_root/$job_id/local-key/fullchain
    # shellcheck disable=SC2034 # the other columns
    [ ! -f "$row_file" ] || IFS=$tab read -r row_version watch_etag row_sum <"$row_file" || :
    return
  fi
  for line in $files; do
    [ -z "$watch_artifact" ] || ! is_secret "${line%% *}" || continue
    watch_artifact=${line%% *} watch_output=${line#* }
    is_secret "$watch_artifact" || break
  done
  for row_file in "$state_root/$job_id/pending" "$state_root/$job_id/state"; do
    if [ -f "$row_file" ] && find_row "$row_file" "$watch_artifact" "$watch_output"; then
      watch_etag=$row_etag
      return
    fi
  done
}

is_secret() {
  if is_key "$1" || [ "$1" = keystore.p12 ]; then return 0; else return 1; fi
}

# ask_vault QUERY: sends the request. Sets watch_path, and watch_elapsed to its seconds.
ask_vault() {
  watch_path="/api/v1/certificates/$certificate/$watch_artifact"
  watch_began=$(seconds_now)
  authorized=yes head_only=yes fetch_seconds=$((usual_fetch_seconds + watch_wait))
  http_get "$watch_path$1" "$scratch/body" "$watch_etag"
  authorized=no head_only=no
  watch_elapsed=$(($(seconds_now) - watch_began))
}

seconds_now() {
  whole_number "$(date '+%s')" 0
}

# The request ended without another version. If the vault did not hold it as long as it was asked to, the next one waits: for
# the time that the vault asks for (it stops, or holds too many requests), or for the rest of the time.
watch_unchanged() {
  watch_recovered
  if [ "$is_held" = no ]; then
    [ "$watch_unheld" = yes ] || info "this vault cannot hold requests; looking for a new version every $((unheld_pause / 60)) minutes"
    watch_unheld=yes watch_pause=$(jitter "$unheld_pause")
  elif [ -n "$http_retry_after" ]; then
    watch_pause=$(after_retry)
  elif [ $((watch_elapsed * 10)) -lt $((watch_wait * 9)) ]; then
    watch_pause=$(jitter "$watch_wait")
  else
    watch_unheld=no
    lengthen_wait
  fi
}

# An outage behind a proxy shortens waits too: after many held ones, try them twice as long.
lengthen_wait() {
  watch_held=$((watch_held + 1))
  [ "$watch_held" -ge "$enough_held" ] || return 0
  watch_wait=$((watch_wait * 2)) watch_held=0
  [ "$watch_wait" -le "$watch_seconds" ] || watch_wait=$watch_seconds
}

# There is another version: runs the job, after a random pause, because all clients learn of it in the same second. If the run
# does not install it, the next request waits.
watch_news() {
  watch_recovered_from_error
  watch_wait=$watch_seconds watch_shortest=$watch_seconds
  watch_before=$watch_etag
  pause "$(($(random_number) % (pause_seconds + 1)))"
  is_whole_script "$job_directory/install.sh" || fail 1 "$job_directory/install.sh is missing or damaged; create the job again"
  /bin/sh "$job_directory/install.sh" --run "$job_id" </dev/null &
  watched_run=$!
  # A signal ends `wait` but not the process.
  while :; do
    wait "$watched_run"
    run_status=$?
    kill -0 "$watched_run" 2>/dev/null || break
  done
  watched_run=''
  choose_watched
  if [ "$watch_etag" != "$watch_before" ]; then
    watch_delay=0
  elif [ "$run_status" -eq "$exit_busy" ]; then
    watch_pause=$(jitter "$((pause_seconds * 5))")
  else
    back_off
    warn "the run did not install the new version (exit code $run_status); retrying in $watch_pause seconds"
  fi
}

stop_watched_run() {
  kill -s TERM "$watched_run" 2>/dev/null
  wait "$watched_run" 2>/dev/null
}

# A proxy may close a connection that is silent for some time: after two such ends in a row, requests wait half as long.
watch_error() {
  case $http_status in
    000 | 408 | 502 | 504)
      watch_least=$((watch_seconds / 15 + 1))
      if [ "$watch_elapsed" -ge "$watch_least" ] && [ "$watch_wait" -gt "$watch_least" ]; then
        watch_cuts=$((watch_cuts + 1))
        [ "$watch_cuts" -lt 2 ] || {
          watch_wait=$((watch_wait / 2)) watch_cuts=0 watch_held=0
          # Once for each length, though it grows again.
          [ "$watch_wait" -ge "$watch_shortest" ] || {
            watch_shortest=$watch_wait
            info "no response after $watch_elapsed seconds; from now on, requests wait for $watch_wait seconds"
          }
        }
        watch_pause=$(jitter "$pause_seconds")
        return
      fi
      ;;
  esac
  http_hint=''
  if [ "$http_status" = 000 ]; then explain_connection; else explain_status "$watch_path" "$scratch/body"; fi
  if [ -n "$http_retry_after" ]; then watch_pause=$(after_retry); else back_off; fi
  # Once, not at each attempt.
  [ "$watch_failure" = "$http_error" ] || warn "cannot watch $server$watch_path, retrying: $http_error${http_hint:+$newline$http_hint}"
  watch_failure=$http_error
}

watch_recovered() {
  watch_recovered_from_error
  watch_delay=0
}

watch_recovered_from_error() {
  watch_cuts=0
  [ -z "$watch_failure" ] || info "watching certificate \"$certificate\" at $server again"
  watch_failure=''
}

# Sets watch_pause: twice as long as after the previous error, up to a limit.
back_off() {
  watch_delay=$((watch_delay * 2))
  [ "$watch_delay" -gt 0 ] || watch_delay=$((pause_seconds * 5))
  [ "$watch_delay" -le "$longest_pause" ] || watch_delay=$longest_pause
  watch_pause=$(jitter "$watch_delay")
}

# Prints the pause that the vault asks for, and more by chance: all clients of a vault get the same number.
after_retry() {
  retry_after=$http_retry_after
  [ "$retry_after" -le "$longest_retry_after" ] || retry_after=$longest_retry_after
  echo "$((retry_after + $(jitter "$((retry_after / 2 + 10))")))"
}

# jitter SECONDS: prints a random number between half of it and all of it.
jitter() {
  random=$(random_number)
  echo $(($1 - random % ($1 / 2 + 1)))
}

# pause SECONDS: like sleep, but a signal ends the script immediately.
pause() {
  sleep "$1" &
  limited=$!
  wait "$limited"
  limited=''
}

# Prints what keeps the process that watches running.
watch_name() {
  if [ "$scheduler" = systemd ]; then echo "certificate-vault-$job_id-watch.service"; else echo 'a supervisor'; fi
}

tell_watch() {
  if [ "$scheduler" = systemd ]; then
    info "watching the vault: $(watch_name)"
  else
    info "systemd does not run here; to install new versions immediately, let your supervisor keep this running:
$(watch_command)"
  fi
}

watch_fix() {
  if [ "$scheduler" = systemd ]; then echo "see systemctl status $(watch_name)"; else echo "keep this running: $(watch_command)"; fi
}

# The command that a supervisor keeps running.
watch_command() {
  printf "/bin/sh '%s' --run %s --watch\n" "$jobs_root/$job_id/install.sh" "$job_id"
}

# Prints the id of the process that watches for the job, if there is one.
find_watcher() {
  watcher=$(cat "$state_root/$job_id/watch/lock" 2>/dev/null)
  ! is_lock_live "$watcher" || echo "${watcher%% *}"
}

unit_watch() {
  cat <<EOF
[Unit]
Description=Certificate download from the vault as soon as there is a new version (job $job_id)
EOF
  [ "$systemctl_scope" = --user ] || printf 'Wants=network-online.target\nAfter=network-online.target\n'
  # 143: the exit code after SIGTERM. KillMode: a run in progress ends in order.
  cat <<EOF

[Service]
ExecStart=/bin/sh "$jobs_root/$job_id/install.sh" --run $job_id --watch
Restart=always
RestartSec=1min
SuccessExitStatus=143
KillMode=mixed

[Install]
EOF
  if [ "$systemctl_scope" = --user ]; then echo WantedBy=default.target; else echo WantedBy=multi-user.target; fi
}
