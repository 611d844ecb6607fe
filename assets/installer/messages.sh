# ---------------------------------------------------------------------------------------------------------------------
# Messages and exit

# info MESSAGE and warn MESSAGE go to stderr and syslog.
info() { message info "$1"; }
warn() { message warning "$1"; }

# Goes to syslog and, at a terminal, to stderr. Cron would mail every line on stderr, every day.
info_quiet() {
  if [ -t 2 ]; then message info "$1"; else to_syslog info "$1"; fi
}

message() {
  cat <<EOF >&2
certificate-vault: ${job_id:+$job_id: }$2
EOF
  to_syslog "$1" "$2"
}

to_syslog() {
  command -v logger >/dev/null 2>&1 || return 0
  logger -t certificate-vault -p "daemon.$1" "${job_id:+$job_id: }$2" >/dev/null 2>&1 </dev/null || :
}

# fail CODE MESSAGE: exits with an error. A run also records the error for --status, and reports it to the vault.
fail() {
  [ -z "$reporting" ] || exit "$reporting"
  message err "$2"
  [ -z "$run_state" ] || {
    record_run "$1" "$2"
    report_run "$1" "$2" yes
  }
  exit "$1"
}

usage_error() {
  [ -z "$reporting" ] || exit "$reporting"
  message err "$1"
  exit 2
}

# Removes temporary files with keys, locks and child processes at every exit. The next run removes what kill -9 leaves.
cleanup() {
  exit_code=$?
  trap '' HUP INT TERM
  [ -z "$saved_terminal" ] || stty "$saved_terminal" </dev/tty
  [ -z "$limited" ] || kill_tree "$limited" TERM
  [ -z "$watched_run" ] || stop_watched_run
  [ -z "$staging" ] || remove_staging
  [ "$undo_install" = no ] || undo_job
  [ "$undo_keys" = no ] || remove_next_keys
  [ -z "$scratch" ] || rm -rf "$scratch"
  release_lock
  release_install_lock
  exit "$exit_code"
}

set_traps() {
  trap cleanup 0
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap stop_limited USR1
}

initialize() {
  umask_before=$(umask)
  umask 077
  set -f
  # Cron has a short PATH and BSDs install programs in /usr/local. The caller's PATH comes first.
  PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  LC_ALL=C
  export PATH LC_ALL
  tab=$(printf '\t')
  cr=$(printf '\r')
  newline='
'
  IFS=$newline
  # Otherwise GNU ls quotes the names that this script reads.
  unset QUOTING_STYLE
  # CERTIFICATE_VAULT_* is documented in docs/reference/client-installer.md.
  connect_seconds=$(whole_number "${CERTIFICATE_VAULT_CONNECT_SECONDS:-}" 10)
  fetch_seconds=$(whole_number "${CERTIFICATE_VAULT_FETCH_SECONDS:-}" 60)
  fetch_tries=$(whole_number "${CERTIFICATE_VAULT_FETCH_TRIES:-}" 3)
  pause_seconds=$(whole_number "${CERTIFICATE_VAULT_PAUSE_SECONDS:-}" 3)
  reload_seconds=$(whole_number "${CERTIFICATE_VAULT_RELOAD_SECONDS:-}" 120)
  verify_tries=$(whole_number "${CERTIFICATE_VAULT_VERIFY_TRIES:-}" 10)
  sign_seconds=$(whole_number "${CERTIFICATE_VAULT_SIGN_SECONDS:-}" 240)
  check_seconds=$(whole_number "${CERTIFICATE_VAULT_CHECK_SECONDS:-}" 20)
  lock_seconds=$(whole_number "${CERTIFICATE_VAULT_LOCK_SECONDS:-}" 0)
  watch_seconds=$(whole_number "${CERTIFICATE_VAULT_WATCH_SECONDS:-}" 300)
  job_id='' run_state='' saved_terminal='' limited='' staging='' previous='' scratch='' held_lock=''
  tool='' has_openssl=no server='' certificate='' destination='' files='' reload='' schedule='' scheduler=''
  owner='' group='' mode='' verify='' pin='' ca=no allow_http=no api_key='' state_root='' watch='' enrolled=''
  keystore_password='' keystore_code='' job_directory=''
  authorized=no undo_install=no timed_out=no install_lock='' proxies='' warned_modes=''
  writer='' owner_uid='' disk='' walk_safe=$newline stage_path='' job_format='' job_end='' new_directories='' undo_keys=no
  listener_user='' client_cert='' client_key='' local_key='' local_path='' chain_version='' upload='' late_failure=''
  upload_method=POST upload_type=application/x-pem-file head_only=no http_status='' reporting='' watched_run='' clock_step=1
  reload_result='' reload_output='' verify_result='' verify_output=''
  allow_early=${CERTIFICATE_VAULT_ALLOW_NOT_YET_VALID:-no}
  my_uid=$(id -u)
  set_traps
}

whole_number() {
  case $1 in
    '' | *[!0-9]*) printf '%s' "$2" ;;
    *) printf '%s' "$1" ;;
  esac
}

