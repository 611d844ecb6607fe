#!/bin/sh
# shellcheck disable=SC2317,SC2016 # shellcheck does not see what traps and get_"$tool" call, nor that bounded runs awk
# Certificate Vault: the client. It creates, replaces, lists and removes scheduled downloads of certificates and keys, and
# the schedule runs it. For usage, run `sh install.sh --help`.
#
# It runs as root on other people's machines. Therefore nothing runs before the last line is read, input is never
# evaluated as code, the API key is never an argument of a program, and a destination changes only from one complete set
# of files to another. Root writes only where no other user can redirect it, and switches to the owner of the files if
# the directory belongs to that user. Plain POSIX: no `local`, no arrays, no GNU-only flags. A list is a string with one
# entry per line (values contain no line breaks). IFS is a line break everywhere, so `for line in $list` reads a list
# without a temporary file, which a full disk could truncate.

# The vault inserts its own address here when it serves this script.
default_server=''

default_file_mode=0644
private_key_mode=0600

# Exit codes, besides 0 for success, 1 for failure and 2 for wrong usage.
exit_fetch=10
exit_check=11
exit_write=12
exit_reload=13
exit_verify=14
exit_busy=75

usage() {
  cat <<'EOF'
Keep the files of a certificate on this machine up to date with the vault.

Create or replace a job:
  SERVICE_API_KEY=... sh install.sh --server URL --certificate NAME --file ARTIFACT[=OUTPUT]... --destination DIR
    --server URL             address of the vault; https, or http on this machine only
    --certificate NAME       name of the certificate in the vault
    --file ARTIFACT[=OUTPUT] file to download: certificate.crt, chain.crt, fullchain.crt (or fullchain.pem), private.key
                             (or private-key.pem), combined.pem (private key, then full chain), certificate.der or
                             keystore.p12 (PKCS#12); OUTPUT is its name in DIR. Repeatable.
    --destination DIR        directory for the files
    --reload-command CMD     command to run when files change; retried at each run until it succeeds
    --schedule CRON          five cron fields, or @daily and similar; default: once a day at a random time
    --key-file FILE          file with the API key, instead of SERVICE_API_KEY; "-" for standard input
    --keystore-password-file FILE   file with the password of keystore.p12 in its first line
    --local-key              generate the private key on this machine and keep it here: the vault gets certificate
                             signing requests only; the API key needs the scopes certificates:read, certificates:sign
    --local-key-type TYPE    ec256 (default), ec384, rsa2048, rsa3072 or rsa4096
    --ca-file FILE           root certificate that signed the vault's own certificate
    --pin sha256//BASE64     public key of the vault's own certificate; without --ca-file, the only thing trusted.
                             Repeatable, for example with the current and the next key.
    --owner USER, --group GROUP   owner and group of the files
    --mode MODE              mode of the files (default 0644); files with a private key always get 0600
    --verify HOST:PORT       after a reload, check that this server presents the new certificate
    --listener-user USER     over http on this machine: the user whose process listens on the port of --server, if it is
                             not root, the user vault or the user of the job
    --allow-http             send the API key and download private keys unencrypted, to any listener
    --allow-not-yet-valid    install a certificate that is not valid yet, where the clock is wrong; also with --run
    --dry-run                print what would happen, without doing it
Manage jobs (select them by JOB, or by --server, --certificate and --destination):
    --list                   list jobs, one per line
    --status [JOB]           show the state of jobs; fails if a job has a problem
    --run [JOB]              run jobs now
    --set-key                replace the API key of all selected jobs, or of none if the vault does not accept it for
                             each file of each job
    --uninstall [JOB]        remove a job, its schedule and its API key; the files in DIR stay
    --help                   show this help
Exit codes: 0 success, 1 failure, 2 wrong usage, 10 download, 11 check, 12 write, 13 reload, 14 verify, 75 another run
in progress.
EOF
}

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

# fail CODE MESSAGE: exits with an error. A run also records the error for --status.
fail() {
  message err "$2"
  [ -z "$run_state" ] || record_run "$1" "$2"
  exit "$1"
}

usage_error() {
  message err "$1"
  exit 2
}

# Removes temporary files with keys, locks and child processes at every exit. The next run removes what kill -9 leaves.
cleanup() {
  exit_code=$?
  trap '' HUP INT TERM
  [ -z "$saved_terminal" ] || stty "$saved_terminal" </dev/tty
  [ -z "$limited" ] || kill_tree "$limited" TERM
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
  job_id='' run_state='' saved_terminal='' limited='' staging='' previous='' scratch='' held_lock=''
  tool='' has_openssl=no server='' certificate='' destination='' files='' reload='' schedule='' scheduler=''
  owner='' group='' mode='' verify='' pin='' ca=no allow_http=no api_key='' state_root=''
  keystore_password='' keystore_code='' job_directory=''
  authorized=no undo_install=no timed_out=no install_lock='' proxies='' warned_modes=''
  writer='' owner_uid='' disk='' stage_path='' job_format='' job_end='' new_directories='' undo_keys=no
  listener_user='' local_key='' local_path='' chain_version='' upload='' late_failure=''
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

# ---------------------------------------------------------------------------------------------------------------------
# Processes: time limits and locks

# with_limit SECONDS COMMAND...: returns the command's status, or 124 if the time limit stopped it. `timeout` does not
# exist on every system and stops only the process it started, but a reload command that hangs has children.
with_limit() {
  limit_seconds=$1
  shift
  # The shell gives background commands /dev/null as standard input, so pass ours explicitly.
  {
    "$@" <&5 5<&- &
  } 5<&0
  limited=$!
  wait_limited "$limit_seconds"
}

# wait_limited SECONDS: waits for the background process `limited`. The clock is a separate process, because a subshell
# would keep our output open after we exit. It ends within a second after the limited process.
wait_limited() {
  timed_out=no
  # shellcheck disable=SC2016 # the inner shell expands these
  sh -c '
    seconds=0
    while kill -0 "$1"; do
      if [ "$seconds" -ge "$2" ]; then kill -s USR1 "$3"; sleep 1; fi
      sleep 1
      seconds=$((seconds + 1))
    done' clock "$limited" "$1" $$ </dev/null >/dev/null 2>&1 &
  # A signal ends `wait` but not the process.
  while :; do
    wait "$limited" 2>/dev/null
    limited_status=$?
    kill -0 "$limited" 2>/dev/null || break
  done
  limited=''
  [ "$timed_out" = no ] || limited_status=124
  return "$limited_status"
}

# Called when the time is up: sends TERM first and KILL two seconds later.
stop_limited() {
  [ -n "$limited" ] || return 0
  if [ "$timed_out" = no ]; then
    timed_out=yes
    kill_tree "$limited" TERM
  else
    kill_tree "$limited" KILL
  fi
}

# A server chooses the size of its response, so downloads stop at 4 MiB. A vault sends at most about 2 MiB.
largest_response=4194304
largest_head=65536

# limited_download SECONDS COMMAND...: with_limit for programs that write received data to files. The unit of `ulimit -f` is
# 512 bytes, but 1024 in bash outside its POSIX mode, so is_too_large checks the size afterwards.
limited_download() {
  limit_seconds=$1
  shift
  with_limit "$limit_seconds" with_file_limit "$@"
}

with_file_limit() {
  trap - 0 HUP INT TERM
  ulimit -f "$((largest_response / 512))" 2>/dev/null || :
  exec "$@"
}

# bounded COMMAND...: runs a program that reads received data, which may be crafted to take hours. It reads only files and
# pipes of such programs, so a limit of processor time is enough. That needs no other process, and works in pipes and $( ).
bounded() (
  # shellcheck disable=SC3045 # all supported shells have it
  ulimit -t "$check_seconds" 2>/dev/null || :
  exec "$@"
)

# kill_tree PID SIGNAL: signals the process and all its descendants.
kill_tree() {
  kill_list=$(process_parents | awk -v root="$1" '
    { parent[$1] = $2; order[NR] = $1 }
    END {
      found[root] = 1; print root
      for (again = 1; again; ) {
        again = 0
        for (i = 1; i <= NR; i++) if (!(order[i] in found) && (parent[order[i]] in found)) {
          found[order[i]] = 1; print order[i]; again = 1
        }
      }
    }')
  # shellcheck disable=SC2086 # process ids, to be split
  kill -s "$2" $kill_list 2>/dev/null
}

process_parents() {
  ps -A -o pid= -o ppid= 2>/dev/null || ps -o pid,ppid 2>/dev/null
}

# The start time of a process in the system's own format; empty if there is no such process. Together with the process
# id it identifies the owner of a lock, even if another process gets the same id after a reboot.
process_start() {
  if [ -r /proc/self/stat ]; then
    # The program's name is in parentheses and may contain spaces.
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
  else
    ps -o lstart= -p "$1" 2>/dev/null | tr -s ' ' '_'
  fi
}

# acquire_lock FILE SECONDS: waits up to SECONDS for a live owner. Takes over the lock of a dead owner, and an empty lock,
# which a power cut leaves. link(2) creates the lock together with its content, so a lock always has an owner.
acquire_lock() {
  lock_file=$1
  lock_waited=0
  lock_me="$$ $(process_start $$)"
  is_plain "$lock_file" || fail "$exit_write" "$lock_file is not a file; remove it"
  until offer_lock && ln "$lock_file.$$" "$lock_file" 2>/dev/null; do
    if lock_owner=$(cat "$lock_file" 2>/dev/null) && ! is_lock_live "$lock_owner"; then
      remove_dead_lock || sleep 1
    elif [ ! -e "$lock_file" ] && [ "$lock_waited" -lt 3 ]; then
      # It was just released.
      :
    elif [ "$lock_waited" -ge "$2" ]; then
      rm -f "$lock_file.$$"
      return 1
    else
      sleep 1
    fi
    lock_waited=$((lock_waited + 1))
    [ "$lock_waited" -lt 100000 ] || return 1
  done
  rm -f "$lock_file.$$"
  held_lock=$lock_file
}

# Removes the lock of the dead `lock_owner`. Only one process at a time does this, and it reads the lock once more, so that
# none removes the lock that another has just got. Fails if another is doing it, or was killed while it did.
remove_dead_lock() {
  if ln "$lock_file.$$" "$lock_file.removal" 2>/dev/null; then
    if lock_now=$(cat "$lock_file" 2>/dev/null) && [ "$lock_now" = "$lock_owner" ]; then rm -f "$lock_file"; fi
    rm -f "$lock_file.removal"
    return 0
  fi
  if lock_now=$(cat "$lock_file.removal" 2>/dev/null) && ! is_lock_live "$lock_now"; then rm -f "$lock_file.removal"; fi
  return 1
}

# True if the path is a regular file or does not exist. Reading a pipe could block forever, and a link could lead anywhere.
is_plain() {
  [ ! -h "$1" ] && { [ -f "$1" ] || [ ! -e "$1" ]; }
}

# Writes the file that becomes the lock. Another run or a failed installation may have removed it and its directory
# while this process waited.
offer_lock() {
  [ ! -s "$lock_file.$$" ] || return 0
  { { [ -d "${lock_file%/*}" ] || mkdir -p "${lock_file%/*}"; } && cat <<EOF >"$lock_file.$$"; } 2>/dev/null || fail "$exit_write" "cannot write to ${lock_file%/*}"
$lock_me
EOF
}

# Removes the files of processes that were killed while they waited. Live processes still need theirs.
remove_dead_offers() {
  for offer in $(set +f; printf '%s\n' "$1".[0-9]*); do
    is_lock_live "$(cat "$offer" 2>/dev/null)" || rm -f "$offer"
  done
}

is_lock_live() {
  case ${1%% *} in
    '' | *[!0-9]*) return 1 ;;
  esac
  [ "$(process_start "${1%% *}")" = "${1#* }" ]
}

release_lock() {
  [ -z "$held_lock" ] || rm -f "$held_lock"
  held_lock=''
}

release_install_lock() {
  [ -n "$install_lock" ] || return 0
  rm -f "$install_lock"
  install_lock=''
  # Removes the directories only if they are empty.
  rmdir "$jobs_root" "$state_root" 2>/dev/null || :
}

# ---------------------------------------------------------------------------------------------------------------------
# Paths

# Jobs are kept in a private directory: root's in /etc and /var/lib, other users' in the XDG directories.
# CERTIFICATE_VAULT_HOME puts everything under one directory.
find_paths() {
  if [ -n "${CERTIFICATE_VAULT_HOME:-}" ]; then
    jobs_root=$CERTIFICATE_VAULT_HOME/jobs
    state_root=$CERTIFICATE_VAULT_HOME/state
    unit_directory=$CERTIFICATE_VAULT_HOME/systemd
  elif [ "$my_uid" -eq 0 ]; then
    jobs_root=/etc/certificate-vault/jobs
    state_root=/var/lib/certificate-vault
    unit_directory=/etc/systemd/system
  else
    [ -n "${HOME:-}" ] || fail 1 "HOME is not set"
    jobs_root=${XDG_CONFIG_HOME:-$HOME/.config}/certificate-vault/jobs
    state_root=${XDG_STATE_HOME:-$HOME/.local/state}/certificate-vault
    unit_directory=${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user
  fi
  systemctl_scope=--system
  [ "$my_uid" -eq 0 ] || systemctl_scope=--user
  # The path is written to crontabs and unit files, whose quoting rules differ between systems.
  case $jobs_root$state_root in
    *[!A-Za-z0-9/._\ @+,:=-]*) fail 1 "the path $jobs_root contains characters that a crontab cannot hold" ;;
    /*) ;;
    *) fail 1 "the path $jobs_root is not absolute" ;;
  esac
}

# ---------------------------------------------------------------------------------------------------------------------
# Safe paths
#
# A user who can create, rename or link files in a directory controls where a path through it leads, and can change that
# between a check and a write. A shell has no openat(2) to prevent this. So root uses only paths that no other user can
# change: root owns each directory and each link on the path, and neither group nor others can write to them. (In a sticky
# directory of root, such as /tmp, others cannot rename or remove root's files but can add names, so it may be on the path
# but not be the destination.) No other user can interfere then, so there is no race.
#
# The one exception is a directory of the user that --owner names. From the first such directory on, processes of that
# user (as_writer) do everything: links and renames cannot give them more rights than that user has. They get file
# contents on standard input and return them on standard output, and inherit nothing else from root: no terminal, no
# environment, no other descriptor. Their output is only compared, and limited in size and time.
#
# Backups and the journal of a swap are in the job's private state directory. Only renames within the destination are
# atomic, so new files are staged there, in a directory that mkdir(2) creates exclusively. To restore old files, they are
# first copied to a name beside the file and then renamed. So state and destination can be on different file systems.

# stat_entry PATH: sets entry_kind (d, l, - and so on; empty if the path does not exist), entry_mode, entry_uid and, for a
# link, entry_target. Does not follow links.
stat_entry() {
  entry_kind='' entry_mode='' entry_uid='' entry_target=''
  if [ -z "$writer" ]; then
    entry=$(ls -ldn "$1" 2>/dev/null) || return 0
  else
    as_writer ls -ldn "$1" >"$scratch/entry" 2>/dev/null </dev/null || return 0
    entry=$(cat "$scratch/entry")
  fi
  entry_target=${entry#*"$1 -> "}
  split_entry
  entry_kind=${entry_mode%"${entry_mode#?}"}
}

split_entry() {
  IFS=' '
  # shellcheck disable=SC2086 # columns, to be split
  set -- $entry
  IFS=$newline
  entry_mode=$1 entry_uid=$3
}

# walk PATH ACTION OWNER_UID: checks every component of the path and of the links on it by the rules above. On failure
# sets walk_problem. Sets `writer` to --owner if the path goes through that user's directory. ACTION `create` creates
# missing directories one at a time; `check` stops at the first missing one.
walk() {
  walk_rest=$1/ walk_at='' walk_links=0 walk_problem=''
  while [ -n "$walk_rest" ]; do
    walk_name=${walk_rest%%/*} walk_rest=${walk_rest#*/}
    case $walk_name in
      '' | .) continue ;;
      ..)
        walk_at=${walk_at%/*}
        continue
        ;;
    esac
    walk_path=$walk_at/$walk_name
    stat_entry "$walk_path"
    if [ -z "$entry_kind" ]; then
      [ "$2" = create ] || return 0
      umask 022
      as_writer mkdir "$walk_path" 2>/dev/null </dev/null
      umask 077
      stat_entry "$walk_path"
      if [ -z "$entry_kind" ]; then
        walk_problem="cannot create the directory $walk_path"
        return 1
      fi
    fi
    check_entry "$3" inner || return 1
    case $entry_kind in
      d) walk_at=$walk_path ;;
      l)
        walk_links=$((walk_links + 1))
        case $entry_target in
          *[[:cntrl:]]*) walk_links=99 ;;
          /*) walk_at='' ;;
        esac
        walk_rest=$entry_target/$walk_rest
        if [ "$walk_links" -gt 40 ]; then
          walk_problem="$walk_path is a broken link"
          return 1
        fi
        ;;
    esac
  done
  walk_path=${walk_at:-/}
  stat_entry "$walk_path"
  check_entry "$3" last
}

# check_entry OWNER_UID WHERE: checks the component that stat_entry read. WHERE is `inner` or `last`.
check_entry() {
  if [ -n "$1" ] && [ "$entry_uid" = "$1" ] && [ "$1" != 0 ]; then
    [ -n "$writer" ] || become_writer
  elif [ "$entry_uid" != 0 ]; then
    # shellcheck disable=SC2012 # find has no portable way to print it
    walk_user=$(ls -ld "$walk_path" 2>/dev/null | awk 'NR == 1 { print $3 }')
    walk_problem="$walk_path belongs to user $walk_user, who could redirect files that root writes there.
Try: a directory owned by root, or --owner $walk_user to write as that user"
    return 1
  fi
  case $2-$entry_mode in
    *-l*) return 0 ;;
    inner-d????????[tT]*) return 0 ;;
    *-d???????w*) walk_who='any user' ;;
    *-d????w*) walk_who='the group' ;;
    *-d*) return 0 ;;
    *)
      walk_problem="$walk_path is not a directory"
      return 1
      ;;
  esac
  walk_problem="$walk_who can write to $walk_path; private keys are not safe there.
Fix: chmod go-w '$walk_path'
Try: another directory, if other users need to write there"
  return 1
}

# check_private PATH: the same check for the directories of jobs and their state, which only root may own.
check_private() {
  [ "$my_uid" -eq 0 ] || return 0
  walk "$1" check '' || fail "$exit_write" "$walk_problem"
}

# check_destination_place ACTION
check_destination_place() {
  writer=''
  walk_problem=''
  if [ "$my_uid" -ne 0 ]; then
    if [ "$1" = create ] && [ ! -d "$destination" ]; then
      (umask 022 && mkdir -p "$destination") 2>/dev/null || fail "$exit_write" "cannot create the directory $destination"
    fi
    [ -z "$(find "$destination/." -prune -perm -0002 2>/dev/null)" ] ||
      walk_problem="any user can write to $destination; private keys are not safe there.
Fix: chmod o-w '$destination'"
  else
    case $owner in
      '' | *[!0-9]*) owner_uid=$([ -z "$owner" ] || id -u "$owner" 2>/dev/null) ;;
      *) owner_uid=$owner ;;
    esac
    walk "$destination" "$1" "$owner_uid" || :
  fi
  [ -z "$walk_problem" ]
}

# From here on as_writer runs programs as the owner. setpriv is preferred; su exists everywhere, but logs a session for
# each program. Old versions of su have no -s, but use the caller's shell with -m.
become_writer() {
  writer=$owner
  writer_group=${group:-$(id -g "$owner" 2>/dev/null)}
  for writer_tool in setpriv su su-m; do
    with_limit "$connect_seconds" enter_writer id -u >"$scratch/entry" 2>/dev/null </dev/null
    [ "$(cat "$scratch/entry")" != "$owner_uid" ] || return 0
  done
  writer=''
  fail "$exit_write" "$walk_path belongs to $owner, and neither setpriv nor su can run programs as that user.
Try: a directory owned by root"
}

# as_writer COMMAND...: runs a program, as the owner if the destination belongs to that user. Do not call it in $( ): the
# time limit works only in the main shell.
as_writer() {
  if [ -z "$writer" ]; then "$@"; else with_limit "$fetch_seconds" enter_writer "$@"; fi
}

# Sets up the environment of the owner's processes. Without its own session, such a process could type commands into
# root's terminal; without a size limit, it could fill root's disk with its output.
# shellcheck disable=SC2016 # the inner shell expands these
enter_writer() {
  trap - 0 HUP INT TERM
  cd / || exit 1
  ulimit -f 8192 2>/dev/null || :
  case $writer_tool in
    setpriv) set -- setpriv --reuid="$owner_uid" --regid="$writer_group" --init-groups --no-new-privs -- "$@" ;;
    su) set -- su -s /bin/sh -c 'exec "$@"' -- "$writer" sh "$@" ;;
    su-m) set -- su -m "$writer" -c 'exec "$@"' sh "$@" ;;
  esac
  ! command -v setsid >/dev/null 2>&1 || set -- setsid "$@"
  exec env -i PATH="$PATH" LC_ALL=C SHELL=/bin/sh "$@" 3<&- 4<&- 5<&- 6<&-
}

# ---------------------------------------------------------------------------------------------------------------------
# Validation of options

# Values are stored one per line and printed on terminals.
refuse_control() {
  case $2 in
    *[[:cntrl:]]*) usage_error "$1 must not contain line breaks or control characters" ;;
  esac
}

# Sets `server` without a trailing slash, and server_scheme, server_host (without brackets), server_port, server_path.
check_server() {
  server=$1
  while :; do
    case $server in
      */) server=${server%/} ;;
      *) break ;;
    esac
  done
  case $server in
    *[!]A-Za-z0-9.:/_~%+[-]*) usage_error "--server: \"$1\" is not a URL such as https://vault.example" ;;
    https://?*) server_scheme=https server_port=443 ;;
    http://?*) server_scheme=http server_port=80 ;;
    *) usage_error "--server: \"$1\" must begin with https://" ;;
  esac
  server_authority=${server#*://}
  server_path=''
  case $server_authority in
    */*) server_path=/${server_authority#*/} server_authority=${server_authority%%/*} ;;
  esac
  case $server_authority in
    \[*\]) server_host=${server_authority#\[} server_host=${server_host%\]} ;;
    \[*\]:*) server_host=${server_authority#\[} server_port=${server_authority##*\]:} server_host=${server_host%%\]*} ;;
    *:*) server_host=${server_authority%:*} server_port=${server_authority##*:} ;;
    *) server_host=$server_authority ;;
  esac
  case $server_port in
    '' | *[!0-9]*) usage_error "--server: \"$1\" has no valid port" ;;
  esac
  case $server_authority in
    \[*) case $server_host in *[!0-9A-Fa-f:.]* | '') usage_error "--server: \"$1\" has no valid address" ;; esac ;;
    *) case $server_host in *[!A-Za-z0-9.-]* | '') usage_error "--server: \"$1\" has no valid host" ;; esac ;;
  esac
  [ "$server_scheme" = https ] || is_loopback "$server_host" || [ "$allow_http" = yes ] ||
    usage_error "plain http would send the API key and private keys unencrypted to $server_host.
Try: https, or --allow-http to accept the risk"
}

is_loopback() {
  case $1 in
    localhost | ::1) return 0 ;;
    # 127.example.com is a DNS name.
    127.*[!0-9.]*) return 1 ;;
    127.*) return 0 ;;
    *) return 1 ;;
  esac
}

check_certificate() {
  case $1 in
    '' | .* | '*' | *[!A-Za-z0-9*._-]*) usage_error "--certificate: \"$1\" is not a valid certificate name" ;;
  esac
  [ "${#1}" -le 128 ] || usage_error "--certificate: the name has more than 128 characters"
  certificate=$1
}

# Normalizes the path, because it is part of the job's identity. Links are not resolved, because an administrator may
# change their targets.
check_destination() {
  case $1 in
    '') usage_error "--destination must not be empty" ;;
    /*) destination=$1 ;;
    *) destination=$(pwd)/$1 ;;
  esac
  case $destination/ in
    */../*) usage_error "--destination: \"$1\" must not contain \"..\"" ;;
  esac
  # The final letter protects trailing spaces and marks the position of a trailing slash.
  destination=$(printf '%s' "$destination/" | sed -e 's|//*|/|g' -e ':again' -e 's|/\./|/|g' -e 't again' -e 's|$|x|')
  destination=${destination%/x}
  [ -n "$destination" ] || usage_error "--destination must not be the root directory"
}

# add_file ARTIFACT[=OUTPUT]: adds a line "ARTIFACT OUTPUT" to `files`.
add_file() {
  refuse_control --file "$1"
  file_artifact=${1%%=*}
  file_output=$file_artifact
  case $1 in
    *=*) file_output=${1#*=} ;;
  esac
  case $file_artifact in
    certificate.crt | chain.crt | fullchain.crt | private.key | fullchain.pem | private-key.pem) ;;
    combined.pem | certificate.der | keystore.p12) ;;
    *) usage_error "--file: unknown artifact \"$file_artifact\"; use certificate.crt, chain.crt, fullchain.crt \
(or fullchain.pem), private.key (or private-key.pem), combined.pem, certificate.der or keystore.p12" ;;
  esac
  case $file_output in
    '') usage_error "--file: the file name for $file_artifact is empty" ;;
    . | .. | */*) usage_error "--file: \"$file_output\" is not a plain file name" ;;
    .vault-*) usage_error "--file: \"$file_output\": names that begin with .vault- are reserved" ;;
  esac
  [ "${#file_output}" -le 200 ] || usage_error "--file: the name \"$file_output\" has more than 200 characters"
  # macOS file systems ignore case by default.
  file_folded=$(fold_case "$file_output")
  for file_line in $files; do
    [ "$(fold_case "${file_line#* }")" != "$file_folded" ] ||
      usage_error "--file: two files have the name \"$file_output\""
  done
  files=$files${files:+$newline}"$file_artifact $file_output"
}

# add_pins PINS: adds pins, separated by commas or semicolons, to `pin`, where semicolons separate them, as curl and GNU
# wget expect.
add_pins() {
  for one_pin in $(one_per_line "$1"); do
    case $one_pin in
      sha256//*[!A-Za-z0-9+/=]*) one_pin_length=0 ;;
      sha256//*=) one_pin_length=${#one_pin} ;;
      *) one_pin_length=0 ;;
    esac
    [ "$one_pin_length" -eq 52 ] || usage_error "--pin: \"$one_pin\" must be sha256// followed by 44 characters of base64"
    case ";$pin;" in
      *";$one_pin;"*) ;;
      *) pin=$pin${pin:+;}$one_pin ;;
    esac
  done
}

one_per_line() {
  # shellcheck disable=SC2020 # both become line breaks
  tr ',;' '\n\n' <<EOF
$1
EOF
}

fold_case() {
  tr '[:upper:]' '[:lower:]' <<EOF
$1
EOF
}

# PEM files from which openssl reads the leaf certificate.
is_leaf() {
  case $1 in certificate.crt | fullchain.crt | fullchain.pem | combined.pem) return 0 ;; *) return 1 ;; esac
}

# PEM files from which openssl reads the private key.
is_key() {
  case $1 in private.key | private-key.pem | combined.pem) return 0 ;; *) return 1 ;; esac
}

# Files that are not PEM.
is_der() {
  case $1 in certificate.der | keystore.p12) return 0 ;; *) return 1 ;; esac
}

# Files that are made here from the local key, if the job has one.
is_local() {
  [ -n "$local_key" ] || return 1
  case $1 in private.key | private-key.pem | combined.pem | keystore.p12) return 0 ;; *) return 1 ;; esac
}

has_keystore() {
  case $newline$files in *"${newline}keystore.p12 "*) return 0 ;; *) return 1 ;; esac
}

check_options() {
  [ -n "$server" ] || usage_error "--server is missing"
  [ -n "$certificate" ] || usage_error "--certificate is missing"
  [ -n "$destination" ] || usage_error "--destination is missing"
  [ -n "$files" ] || usage_error "--file is missing; give at least one artifact"
  if has_keystore; then
    [ -n "$keystore_file" ] || usage_error "--file keystore.p12 needs --keystore-password-file"
  else
    [ -z "$keystore_file" ] || usage_error "--keystore-password-file needs --file keystore.p12"
  fi
  check_local_key
  case $mode in
    '' | [0-7][0-7][0-7] | 0[0-7][0-7][0-7]) ;;
    *) usage_error "--mode: \"$mode\" is not an octal mode such as 0644" ;;
  esac
  case $owner$group in
    -* | *[!A-Za-z0-9._@\\+-]*) usage_error "--owner, --group: not a valid user or group name" ;;
  esac
  case $listener_user in
    -* | *[!A-Za-z0-9._@\\+-]*) usage_error "--listener-user: not a valid user name" ;;
  esac
  case $verify in
    '') return ;;
    *[!]A-Za-z0-9.:[-]* | :* | *: | -*) usage_error "--verify: \"$verify\" is not HOST:PORT" ;;
    *:*) case ${verify##*:} in *[!0-9]*) usage_error "--verify: \"$verify\" is not HOST:PORT" ;; esac ;;
    *) usage_error "--verify: \"$verify\" is not HOST:PORT" ;;
  esac
  [ "$has_openssl" = yes ] || fail 1 "--verify needs the openssl program, which is not installed"
  [ -n "$(first_leaf)" ] || usage_error "--verify needs --file certificate.crt, fullchain.crt or combined.pem"
}

check_local_key() {
  if [ -z "$local_key" ]; then
    [ -z "$local_key_type" ] || usage_error "--local-key-type needs --local-key"
    return 0
  fi
  local_key=${local_key_type:-$local_key}
  case $local_key in
    ec256 | ec384 | rsa2048 | rsa3072 | rsa4096) ;;
    *) usage_error "--local-key-type: unknown type \"$local_key\"; use ec256, ec384, rsa2048, rsa3072 or rsa4096" ;;
  esac
  [ "$has_openssl" = yes ] || fail 1 "--local-key needs the openssl program, which is not installed"
  for line in $files; do
    ! is_local "${line%% *}" || return 0
  done
  usage_error "--local-key needs --file private.key, combined.pem or keystore.p12"
}

# Prints the output name of the first file that begins with the leaf certificate.
first_leaf() {
  for leaf_line in $files; do
    if is_leaf "${leaf_line%% *}"; then
      printf '%s\n' "${leaf_line#* }"
      return
    fi
  done
}

# Reads the API key from --key-file, the environment, or the terminal without echo. Removes it from the environment, so
# that no child inherits it.
read_api_key() {
  if [ "$key_file" = - ]; then
    api_key=$stdin_key
    [ -n "$api_key" ] || fail 1 "--key-file: standard input has no API key"
  elif [ -n "$key_file" ]; then
    [ -r "$key_file" ] || fail 1 "--key-file: cannot read $key_file"
    IFS= read -r api_key <"$key_file" || [ -n "$api_key" ] || fail 1 "--key-file: $key_file is empty"
  elif [ -n "${SERVICE_API_KEY:-}" ]; then
    api_key=$SERVICE_API_KEY
  elif (: </dev/tty) 2>/dev/null; then
    saved_terminal=$(stty -g </dev/tty) || fail 1 "cannot prompt for the API key on this terminal"
    stty -echo </dev/tty
    printf 'API key: ' >/dev/tty
    IFS= read -r api_key </dev/tty || api_key=''
    stty "$saved_terminal" </dev/tty
    saved_terminal=''
    printf '\n' >/dev/tty
  else
    usage_error "no API key: set SERVICE_API_KEY, or use --key-file"
  fi
  unset SERVICE_API_KEY
  api_key=${api_key%"$cr"}
  case $api_key in
    '' | *[!A-Za-z0-9._~+/=-]*) usage_error "the API key is empty or contains invalid characters" ;;
  esac
}

# Reads the password of the keystore: the first line of the file, in UTF-8.
read_keystore_password() {
  [ -n "$keystore_file" ] || return 0
  { [ -f "$keystore_file" ] && [ -r "$keystore_file" ]; } || fail 1 "--keystore-password-file: cannot read $keystore_file"
  IFS= read -r keystore_password <"$keystore_file" || [ -n "$keystore_password" ] ||
    fail 1 "--keystore-password-file: $keystore_file is empty"
  keystore_password=${keystore_password%"$cr"}
  case $keystore_password in
    '') fail 1 "--keystore-password-file: the first line of $keystore_file is empty" ;;
    *[[:cntrl:]]*) fail 1 "--keystore-password-file: the password in $keystore_file contains a control character" ;;
  esac
}

# ---------------------------------------------------------------------------------------------------------------------
# Schedules

# cron_to_calendar SCHEDULE [LOCAL UTC LAST]: converts a cron schedule to systemd.time(7), one OnCalendar value per line.
# Fails and prints the reason if the schedule is not valid, so it also validates schedules for cron. With LOCAL UTC LAST
# (the current local time, the current time in UTC, and the last run in UTC, such as 2026-11-22T17:03:00) it prints
# `overdue` instead, if the last run was more than an hour before the second to last scheduled time. The hour allows for
# a change to daylight saving time.
cron_to_calendar() {
  awk -v local_now="${2:-}" -v utc_now="${3:-}" -v last_run="${4:-}" '
    function refuse(why) { print why; failed = 1; exit 1 }
    function number(text, names,   i) {
      if (text ~ /^[0-9]+$/ && length(text) <= 2) return text + 0
      i = names == "" ? 0 : index(names, tolower(text))
      if (length(text) == 3 && i % 3 == 1 && text ~ /^[A-Za-z]+$/) return (i - 1) / 3 + (names ~ /^jan/)
      refuse("\"" text "\" is not valid in this field")
    }
    # Fills set[field, value]; full[field] is true if the set has all values.
    function expand(field, text, low, high, names,   parts, count, i, piece, slash, step, dash, from, to, value) {
      if (text ~ /^,/ || text ~ /,$/ || text ~ /,,/) refuse("\"" text "\" has an empty item")
      count = split(text, parts, ",")
      for (i = 1; i <= count; i++) {
        piece = parts[i]; step = 1; slash = index(piece, "/")
        if (slash) {
          step = substr(piece, slash + 1); piece = substr(piece, 1, slash - 1)
          if (step !~ /^[0-9]+$/ || step + 0 < 1) refuse("\"" parts[i] "\" has no valid step")
          step += 0
        }
        dash = index(piece, "-")
        if (piece == "*") { from = low; to = field == 5 ? 6 : high }
        else if (dash) { from = number(substr(piece, 1, dash - 1), names); to = number(substr(piece, dash + 1), names) }
        else {
          if (slash) refuse("\"" parts[i] "\" has a step without a range")
          from = to = number(piece, names)
        }
        if (from < low || to > high) refuse("\"" parts[i] "\" is not between " low " and " high)
        if (from > to) refuse("\"" parts[i] "\" is a reversed range")
        for (value = from; value <= to; value += step) set[field, field == 5 ? value % 7 : value] = 1
      }
      full[field] = 1
      for (value = low; value <= (field == 5 ? 6 : high); value++) if (!((field, value) in set)) full[field] = 0
    }
    function list(field, low, high,   text, value) {
      if (full[field]) return "*"
      for (value = low; value <= high; value++) if ((field, value) in set)
        text = text (text == "" ? "" : ",") sprintf("%02d", value)
      return text
    }
    function weekdays(   text, value, day) {
      if (full[5]) return ""
      split("Sun Mon Tue Wed Thu Fri Sat", day, " ")
      for (value = 0; value <= 6; value++) if ((5, value) in set) text = text (text == "" ? "" : ",") day[value + 1]
      return text " "
    }
    # Whether any month of the set has a day of the set.
    function exists(   month, day, days) {
      split("31 29 31 30 31 30 31 31 30 31 30 31", days, " ")
      for (month = 1; month <= 12; month++) if ((4, month) in set)
        for (day = 1; day <= days[month]; day++) if ((3, day) in set) return 1
      return 0
    }
    # Converts dates to days since 1970 and back. Years begin in March here, so that February 29 is the last day.
    function days_of(y, m, d) {
      if (m < 3) { y--; m += 12 }
      return 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d - 719469
    }
    function date_of(days,   day, year) {
      day = (days + 719468) % 146097
      year = int((day - int(day / 1460) + int(day / 36524) - int(day / 146096)) / 365)
      day -= 365 * year + int(year / 4) - int(year / 100)
      month_of = int((5 * day + 2) / 153); day_of = day - int((153 * month_of + 2) / 5) + 1
      month_of += month_of < 10 ? 3 : -9
    }
    function seconds_of(time,   part) {
      if (time !~ /^[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z?$/) return 0
      split(time, part, /[-T:Z]/)
      return days_of(part[1], part[2], part[3]) * 86400 + part[4] * 3600 + part[5] * 60 + part[6]
    }
    # The second to last scheduled time, in seconds of the local clock.
    function last_but_one(now, either,   day, left, minute, hit, found) {
      for (day = int(now / 86400); left++ < 6000; day--) {
        date_of(day)
        if (!((4, month_of) in set)) continue
        hit = ((3, day_of) in set) + ((5, (day + 4) % 7) in set)
        if (hit < (either ? 1 : 2)) continue
        for (minute = 1439; minute >= 0; minute--)
          if ((2, int(minute / 60)) in set && (1, minute % 60) in set && day * 86400 + minute * 60 <= now && ++found == 2)
            return day * 86400 + minute * 60
      }
      return 0
    }
    NR > 1 { refuse("more than one line") }
    {
      if ($0 ~ /^@/) {
        macro["@yearly"] = macro["@annually"] = "0 0 1 1 *"; macro["@monthly"] = "0 0 1 * *"
        macro["@weekly"] = "0 0 * * 0"; macro["@daily"] = macro["@midnight"] = "0 0 * * *"
        macro["@hourly"] = "0 * * * *"
        if (!($1 in macro) || NF != 1) refuse("\"" $0 "\" is not supported")
        $0 = macro[$1]
      }
      if (NF != 5) refuse("expected 5 fields, found " NF)
      expand(1, $1, 0, 59, ""); expand(2, $2, 0, 23, ""); expand(3, $3, 1, 31, "")
      expand(4, $4, 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"); expand(5, $5, 0, 7, "sunmontuewedthufrisat")
      time = list(2, 0, 23) ":" list(1, 0, 59) ":00"
      # In cron, a job with both day fields runs if either matches; a field that begins with a star does not count.
      either = $3 !~ /^\*/ && $5 !~ /^\*/
      if (!either && !exists()) refuse("no month has this day")
      if (local_now != "") {
        local = seconds_of(local_now)
        print (seconds_of(last_run) + local - seconds_of(utc_now) < last_but_one(local, either) - 3600 ? "overdue" : "in time")
        exit
      }
      if (!either) print weekdays() "*-" list(4, 1, 12) "-" list(3, 1, 31) " " time
      else {
        if (exists()) print "*-" list(4, 1, 12) "-" list(3, 1, 31) " " time
        print weekdays() "*-" list(4, 1, 12) "-* " time
      }
    }
    END { if (!failed && NR == 0) { print "empty"; exit 1 } }
  ' <<EOF
$1
EOF
}

# Picks a random daily time, so that machines that are set up at the same time do not all download at the same time.
random_schedule() {
  random=$(od -A n -N 2 -t u2 /dev/urandom 2>/dev/null | tr -d ' \n')
  [ -n "$random" ] || random=$(printf '%s %s %s' "$(uname -n)" "$(date)" "$$" | cksum | cut -c 1-4)
  printf '%s %s * * *\n' "$((random % 1440 % 60))" "$((random % 1440 / 60))"
}

# Sets `scheduler` to cron or systemd before anything is changed.
choose_scheduler() {
  if command -v crontab >/dev/null 2>&1; then
    scheduler=cron
    read_crontab >/dev/null || fail 1 "crontab -l failed, so the crontab cannot be changed safely: $crontab_error"
  elif systemctl "$systemctl_scope" show --property=Version >/dev/null 2>&1 </dev/null; then
    scheduler=systemd
  else
    fail 1 "cannot schedule downloads: neither crontab nor a running systemd found; install cron"
  fi
}

# Prints the current crontab, which is empty for a user without one. Any other error is a failure: treating it as an empty
# crontab would erase the real one. Sets crontab_error.
read_crontab() {
  crontab_error=''
  crontab -l 2>"$scratch/crontab.error" </dev/null && return 0
  crontab_error=$(cat "$scratch/crontab.error")
  case $crontab_error in
    *"no crontab for"* | *"can't open"*"No such file or directory"*) return 0 ;;
    *) return 1 ;;
  esac
}

# The checksum of the installed crontab, without the header that some systems add. Compared with a file, it detects a copy
# that a full disk truncated, which the exit code of crontab does not report.
installed_crontab_sum() {
  crontab -l 2>/dev/null </dev/null | without_header | cksum
}

without_header() {
  sed -e '/^# DO NOT EDIT THIS FILE/d' -e '/^# (.* installed on /d' -e '/^# (Cron version /d'
}

# new_crontab OLD ID [LINE]: prints the crontab without the job's old line and with its new one.
new_crontab() {
  awk -v tag=" # certificate-vault:$2" 'substr($0, length($0) - length(tag) + 1) != tag' "$1" &&
    { [ -z "${3:-}" ] || printf '%s # certificate-vault:%s\n' "$3" "$2"; }
}

# The expected checksum of the new crontab, computed by another program and without the disk.
new_crontab_sum() {
  {
    {
      cat "$1"
      [ -z "$(tail -c 1 "$1")" ] || echo
    } | sed "/ # certificate-vault:$(printf '%s' "$2" | sed 's/[.]/\\./g')\$/d"
    [ -z "${3:-}" ] || printf '%s # certificate-vault:%s\n' "$3" "$2"
  } | cksum
}

# change_crontab ID [LINE]: replaces or removes the job's line, which it finds by its whole last word, because another
# job's id may begin or end like this one. Everything else in the crontab belongs to the user: the new crontab is checked
# before it is installed and again afterwards, and the old one is restored if the result differs.
change_crontab() (
  # This subshell must not release the locks of the job.
  # shellcheck disable=SC2030 # on purpose
  held_lock='' install_lock=''
  trap release_lock 0
  acquire_lock "$state_root/crontab.lock" 60 || fail "$exit_busy" "another installer has held the crontab lock for a minute"
  old=$scratch/crontab.old new=$scratch/crontab.new
  read_crontab >"$old" ||
    fail 1 "crontab -l failed, so the crontab cannot be changed safely: $crontab_error"
  [ "$(without_header <"$old" | cksum)" = "$(installed_crontab_sum)" ] ||
    fail "$exit_write" "cannot copy the crontab to $scratch; is that disk full?"
  new_crontab "$old" "$@" >"$new" || fail "$exit_write" "cannot write the new crontab to $scratch; is that disk full?"
  [ "$(cksum <"$new")" = "$(new_crontab_sum "$old" "$@")" ] ||
    fail "$exit_write" "the new crontab in $scratch is incomplete, so the crontab was not changed; is that disk full?"
  cmp -s "$old" "$new" && exit 0
  crontab_status=0
  crontab "$new" </dev/null || crontab_status=$?
  [ "$(installed_crontab_sum)" != "$(without_header <"$new" | cksum)" ] || exit 0
  [ "$(installed_crontab_sum)" = "$(without_header <"$old" | cksum)" ] || crontab "$old" </dev/null || :
  [ "$(installed_crontab_sum)" != "$(without_header <"$old" | cksum)" ] ||
    fail 1 "crontab rejected the new crontab (exit code $crontab_status); the old one is unchanged"
  cp "$old" "$state_root/crontab.before" && crontab_kept="; a copy is in $state_root/crontab.before"
  fail 1 "crontab stored an incomplete crontab, and the old one could not be restored${crontab_kept:-}"
)

cron_line() {
  printf "%s /bin/sh '%s' --run %s\n" "$schedule" "$jobs_root/$job_id/install.sh" "$job_id"
}

unit_service() {
  cat <<EOF
[Unit]
Description=Certificate download from the vault (job $job_id)
EOF
  # The systemd user manager has no such target.
  [ "$systemctl_scope" = --user ] || printf 'Wants=network-online.target\nAfter=network-online.target\n'
  cat <<EOF

[Service]
Type=oneshot
ExecStart=/bin/sh "$jobs_root/$job_id/install.sh" --run $job_id
TimeoutStartSec=15min
EOF
}

unit_timer() {
  cat <<EOF
[Unit]
Description=Certificate download from the vault (job $job_id): $schedule

[Timer]
EOF
  cron_to_calendar "$schedule" | sed 's/^/OnCalendar=/'
  # Persistent: a machine that was off at the scheduled time catches up. AccuracySec: systemd must not shift the time.
  cat <<EOF
Persistent=true
AccuracySec=1s

[Install]
WantedBy=timers.target
EOF
}

install_schedule() {
  if [ "$scheduler" = cron ]; then
    change_crontab "$job_id" "$(cron_line)" || return 1
    remove_units || warn "could not remove the timer $unit.timer of an earlier installation"
    return 0
  fi
  install_units || return 1
  [ "$systemctl_scope" = --system ] ||
    info "the timer runs only while you are signed in; to run it always, use \"loginctl enable-linger\""
}

# Writes the units in their final directory, so that they get the SELinux label of that directory. Restores the old units
# if systemd rejects the new ones.
install_units() {
  unit=certificate-vault-$job_id
  (umask 022 && mkdir -p "$unit_directory") || return 1
  for part in service timer; do
    rm -f "$unit_directory/$unit.$part.old"
    [ ! -e "$unit_directory/$unit.$part" ] || cp -p "$unit_directory/$unit.$part" "$unit_directory/$unit.$part.old" || return 1
  done
  if (umask 022 && unit_service >"$unit_directory/$unit.service.new" && unit_timer >"$unit_directory/$unit.timer.new") &&
    mv -f "$unit_directory/$unit.service.new" "$unit_directory/$unit.service" &&
    mv -f "$unit_directory/$unit.timer.new" "$unit_directory/$unit.timer" &&
    start_timer; then
    rm -f "$unit_directory/$unit.service.old" "$unit_directory/$unit.timer.old"
    return 0
  fi
  rm -f "$unit_directory/$unit.service.new" "$unit_directory/$unit.timer.new"
  if [ -e "$unit_directory/$unit.timer.old" ]; then
    for part in service timer; do
      mv -f "$unit_directory/$unit.$part.old" "$unit_directory/$unit.$part"
    done
    start_timer >/dev/null 2>&1 || warn "restored the old timer in $unit_directory, but systemd failed to start it"
  else
    remove_units
  fi
  return 1
}

start_timer() {
  systemctl "$systemctl_scope" daemon-reload </dev/null >&2 &&
    systemctl "$systemctl_scope" enable "$unit.timer" </dev/null >&2 &&
    systemctl "$systemctl_scope" restart "$unit.timer" </dev/null >&2
}

# Fails if systemd runs and cannot disable the timer.
remove_units() {
  unit=certificate-vault-$job_id
  [ -e "$unit_directory/$unit.timer" ] || return 0
  systemctl "$systemctl_scope" disable --now "$unit.timer" </dev/null >/dev/null 2>&1 ||
    ! systemctl "$systemctl_scope" show --property=Version >/dev/null 2>&1 </dev/null || return 1
  rm -f "$unit_directory/$unit.timer" "$unit_directory/$unit.service" || return 1
  systemctl "$systemctl_scope" daemon-reload </dev/null >/dev/null 2>&1
  return 0
}

remove_schedule() {
  if command -v crontab >/dev/null 2>&1; then
    change_crontab "$job_id" || return 1
  elif [ "$scheduler" = cron ]; then
    message err "cannot remove the job's line without the crontab program; install cron again"
    return 1
  fi
  remove_units
}

# Whether the schedule of the job is installed.
is_scheduled() {
  unit=certificate-vault-$job_id
  if [ "$scheduler" = cron ]; then
    # shellcheck disable=SC2312
    crontab -l 2>/dev/null </dev/null | grep -F -x -e "$(cron_line) # certificate-vault:$job_id" >/dev/null
  else
    [ -s "$unit_directory/$unit.timer" ] && [ -s "$unit_directory/$unit.service" ] &&
      systemctl "$systemctl_scope" is-enabled "$unit.timer" >/dev/null 2>&1 </dev/null &&
      systemctl "$systemctl_scope" is-active "$unit.timer" >/dev/null 2>&1 </dev/null
  fi
}

# ---------------------------------------------------------------------------------------------------------------------
# Jobs on disk

# The job id is derived from server, certificate and destination: a readable part and a checksum of all three. If two jobs
# have the same checksum, the later one gets a number.
find_job_id() {
  job_base=$(printf '%s' "$certificate" | tr '*' '_' | cut -c 1-60)
  job_base=$job_base-$(printf '%s\n' "$server" "$certificate" "$destination" | cksum | cut -d ' ' -f 1)
  job_id=$job_base
  job_count=1
  while [ -f "$jobs_root/$job_id/job" ] && ! is_this_job "$job_id"; do
    job_count=$((job_count + 1))
    job_id=$job_base-$job_count
  done
}

is_this_job() {
  [ "$(job_value "$1" server)" = "$server" ] && [ "$(job_value "$1" certificate)" = "$certificate" ] &&
    [ "$(job_value "$1" destination)" = "$destination" ]
}

# job_value ID NAME: prints one value of any job.
job_value() {
  [ ! -f "$jobs_root/$1/job" ] || sed -n "s/^$2=//p" "$jobs_root/$1/job" 2>/dev/null
}

write_job() {
  cat <<EOF
format=2
state=$state_root
server=$server
certificate=$certificate
destination=$destination
schedule=$schedule
scheduler=$scheduler
reload=$reload
owner=$owner
group=$group
mode=$mode
verify=$verify
pin=$pin
ca=$ca
allow_http=$allow_http
EOF
  [ -z "$local_key" ] || cat <<EOF || return 1
local_key=$local_key
EOF
  [ -z "$listener_user" ] || cat <<EOF || return 1
listener_user=$listener_user
EOF
  for job_line in $proxies; do
    cat <<EOF || return 1
proxy=$job_line
EOF
  done
  for job_line in $files; do
    cat <<EOF || return 1
file=$job_line
EOF
  done
  echo end=job
}

# Parses values; the file is never evaluated as code.
read_job() {
  [ -r "$jobs_root/$1/job" ] || fail 1 "job \"$1\" not found in $jobs_root"
  job_id=$1 files='' proxies='' local_key='' listener_user='' job_format='' job_end='' server='' certificate='' destination='' schedule='' scheduler=''
  while IFS= read -r job_line <&4; do
    job_text=${job_line#*=}
    case ${job_line%%=*} in
      format) job_format=$job_text ;;
      end) job_end=$job_text ;;
      local_key) local_key=$job_text ;;
      listener_user) listener_user=$job_text ;;
      proxy) proxies=$proxies${proxies:+$newline}$job_text ;;
      state) state_root=$job_text ;;
      server) server=$job_text ;;
      certificate) certificate=$job_text ;;
      destination) destination=$job_text ;;
      schedule) schedule=$job_text ;;
      scheduler) scheduler=$job_text ;;
      reload) reload=$job_text ;;
      owner) owner=$job_text ;;
      group) group=$job_text ;;
      mode) mode=$job_text ;;
      verify) verify=$job_text ;;
      pin) pin=$job_text ;;
      ca) ca=$job_text ;;
      allow_http) allow_http=$job_text ;;
      file) files=$files${files:+$newline}$job_text ;;
      *) fail 1 "$jobs_root/$1/job has a line that this version does not support: ${job_line%%=*}" ;;
    esac
  done 4<"$jobs_root/$1/job"
  # Version 0.1.0 wrote neither format nor end.
  case $job_format-$job_end in
    2-job | -) ;;
    *) files='' ;;
  esac
  {
    [ -n "$server" ] && [ -n "$certificate" ] && [ -n "$destination" ] && [ -n "$schedule" ] && [ -n "$state_root" ] &&
      [ -n "$files" ]
  } || fail 1 "$jobs_root/$1/job is damaged; create the job again, or remove $jobs_root/$1 and its schedule"
}

# Saves the proxy settings of the shell that creates a job, because cron does not have these variables. They may contain a
# password, so they are stored in the job file, which is as private as the API key.
save_proxies() {
  proxies=''
  save_proxy http_proxy "${http_proxy:-}"
  save_proxy https_proxy "${https_proxy:-}"
  save_proxy all_proxy "${all_proxy:-}"
  save_proxy no_proxy "${no_proxy:-}"
  save_proxy HTTPS_PROXY "${HTTPS_PROXY:-}"
  save_proxy ALL_PROXY "${ALL_PROXY:-}"
  save_proxy NO_PROXY "${NO_PROXY:-}"
}

unset_proxies() {
  for proxy in $proxies; do
    unset "${proxy%%=*}"
  done
}

save_proxy() {
  [ -n "$2" ] || return 0
  refuse_control "$1" "$2"
  proxies=$proxies${proxies:+$newline}$1=$2
}

# Exports the proxy settings for the download programs. The reload command does not get them.
use_proxies() {
  for proxy in $proxies; do
    case $proxy in
      http_proxy=* | https_proxy=* | all_proxy=* | no_proxy=* | HTTPS_PROXY=* | ALL_PROXY=* | NO_PROXY=*) export "${proxy?}" ;;
    esac
  done
}

# Prints the ids of the jobs that match the options, one per line.
matching_jobs() {
  for candidate in $(set +f && cd "$jobs_root" 2>/dev/null && for found in *; do
    [ ! -f "$found/job" ] || printf '%s\n' "$found"
  done); do
    [ -z "$wanted_job" ] || [ "$candidate" = "$wanted_job" ] || continue
    [ -z "$server" ] || [ "$(job_value "$candidate" server)" = "$server" ] || continue
    [ -z "$certificate" ] || [ "$(job_value "$candidate" certificate)" = "$certificate" ] || continue
    [ -z "$destination" ] || [ "$(job_value "$candidate" destination)" = "$destination" ] || continue
    printf '%s\n' "$candidate"
  done
}

# Two jobs that write the same file would keep overwriting each other.
refuse_shared_files() {
  for other in $(wanted_job='' server='' certificate='' matching_jobs); do
    [ "$other" != "$job_id" ] || continue
    for own_line in $files; do
      job_value "$other" file | cut -d ' ' -f 2- | grep -F -x -e "${own_line#* }" >/dev/null || continue
      fail 1 "job $other already installs a file \"${own_line#* }\" in $destination; use another name, or remove that job with \
--uninstall $other"
    done
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# HTTP

# Sets `tool` to a program that is installed and runs. Two versions of wget are not used: the one of BusyBox takes headers
# only as arguments, where every user can read the key, and sends them along redirects; Wget2 follows redirects despite
# --max-redirect and does not show the headers of a 304. Without curl or GNU wget, this script writes the request itself,
# over openssl s_client or, without TLS, over nc.
choose_tool() {
  if openssl version >/dev/null 2>&1 </dev/null; then has_openssl=yes; fi
  if curl --version >/dev/null 2>&1 </dev/null; then
    tool=curl
  elif wget --version 2>/dev/null </dev/null | grep '^GNU Wget 1' >/dev/null; then
    tool=wget
  elif [ -n "$pin" ]; then
    fail 1 "--pin needs curl or GNU wget, and neither is installed"
  elif [ "$server_scheme" = https ]; then
    [ "$has_openssl" = yes ] || fail 1 "install curl, GNU wget or openssl (BusyBox wget would show the API key to every user of this machine)"
    tool=openssl
  elif command -v nc >/dev/null 2>&1; then
    tool=nc
  else
    fail 1 "install curl, GNU wget or nc"
  fi
}

# http_get PATH BODY [ETAG]: sends one request, with the key if `authorized` is yes; a POST with the PEM file `upload`, if
# that is not empty. Sets http_status (000 if there was no
# response), http_version, http_etag, http_length, http_location, http_exit (the exit code of the program, `short`, `large`, or
# the listener_problem of is_listener_trusted) and http_error (the program's message). Does not follow redirects.
http_get() {
  http_url=$server$1
  { true >"$2" && true >"$scratch/head" && true >"$scratch/error"; } || scratch_full
  keystore_code=''
  # Percent-encoded, because the programs below treat quotes, backslashes and spaces differently.
  case $1 in
    */keystore.p12 | */keystore.p12'?'*)
      keystore_code=$(tr -d '\r\n' <"$job_directory/keystore-password" | od -A n -v -t x1 | tr -d ' \t\n' | percent_encode)
      ;;
  esac
  if ! is_listener_trusted; then
    http_status=000 http_exit=$listener_problem http_version='' http_etag='' http_length='' http_location='' http_error=''
    return 0
  fi
  get_"$tool" "$1" "$2" "${3:-}"
  http_exit=$?
  if is_too_large "$2"; then
    http_status=000 http_exit=large http_version='' http_etag='' http_length='' http_location=''
    http_error="the response is larger than 4 MiB, or its headers are larger than 64 KiB"
    return 0
  fi
  parse_head
  # The last lines of curl explain certificates in general; the first one has the error.
  http_error=$(bounded awk '/^curl: \(/ { print; found = 1; exit } { last = $0 } END { if (!found) print last }' "$scratch/error" |
    tr -d '[:cntrl:]' | cut -c 1-600)
  case $tool-$http_exit in
    # The time limit of curl, or ours.
    curl-28 | *-124) http_status=000 ;;
  esac
  # A body that is shorter than Content-Length is an error.
  if is_success && [ -n "$http_length" ] && [ "$(byte_count "$2")" != "$http_length" ]; then
    http_status=000 http_exit='short'
    http_error="the connection closed after $(byte_count "$2") of $http_length bytes"
  elif is_success && [ "$http_exit" -ne 0 ]; then
    http_status=000
  fi
}

# is_too_large BODY: whether the response reached a limit. Empties its files, which must not fill a disk until the run ends.
is_too_large() {
  for received in "$1" "$scratch/answer" "$scratch/head" "$scratch/error"; do
    received_most=$largest_response
    case $received in */head | */error) received_most=$largest_head ;; esac
    if [ ! -f "$received" ] || [ "$(byte_count "$received")" -lt "$received_most" ]; then continue; fi
    true >"$1" && true >"$scratch/answer" && true >"$scratch/head" && true >"$scratch/error"
    return 0
  done
  return 1
}

# Plain HTTP does not say who answers, and while the vault is stopped any user of this machine can listen on its port. So the
# listener must belong to root, the user vault, this user or --listener-user. On failure sets listener_problem to `absent` or
# `stranger`, and listener_name. A listener could still change in the moment between this check and the connection. Systems
# without /proc/net have no portable way to find the user.
is_listener_trusted() {
  listener_problem='' listener_name=''
  [ "$server_scheme" = http ] && is_loopback "$server_host" && [ "$allow_http" = no ] && [ -r /proc/net/tcp ] || return 0
  listener_uids=$(find_listeners)
  [ -n "$listener_uids" ] || listener_problem=absent
  for listener_uid in $listener_uids; do
    is_trusted_uid "$listener_uid" && continue
    listener_problem=stranger listener_name=$(user_name "$listener_uid")
    break
  done
  [ -z "$listener_problem" ]
}

# is_trusted_uid UID
is_trusted_uid() {
  [ "$1" != 0 ] && [ "$1" != "$my_uid" ] || return 0
  for trusted_user in vault $listener_user; do
    [ "$1" != "$trusted_user" ] && [ "$1" != "$(id -u "$trusted_user" 2>/dev/null)" ] || return 0
  done
  return 1
}

# user_name UID: prints the name of the user, or the number if it has none.
user_name() {
  { getent passwd "$1" 2>/dev/null || cat /etc/passwd; } | bounded awk -F : -v uid="$1" '
    $3 == uid { print $1; found = 1; exit }
    END { if (!found) print uid }'
}

# Prints the user ids of all listeners that a connection to the server could reach, one per line. The kernel prints
# addresses as hexadecimal numbers in the byte order of the machine, so both orders count. `localhost` may be either
# address, and an address in an unusual notation any of IPv4.
find_listeners() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | bounded awk -v host="$server_host" -v port="$server_port" '
    BEGIN {
      port = sprintf("%04X", port)
      zero = "00000000"
      any[zero] = any[zero zero zero zero] = 1
      if (host ~ /^(localhost|::1)$/) any[zero zero zero "01000000"] = any[zero zero zero "00000001"] = 1
      any4 = host ~ /^127\./
      if (host == "localhost") four("127.0.0.1")
      else if (any4 && host ~ /^127(\.(0|[1-9][0-9]*))+$/ && split(host, parts, ".") == 4) { four(host); any4 = 0 }
      if (host != "::1") any[zero zero "FFFF0000" zero] = any[zero zero "0000FFFF" zero] = 1
    }
    function four(address,   part) {
      split(address, part, ".")
      add(sprintf("%02X%02X%02X%02X", part[4], part[3], part[2], part[1]))
      add(sprintf("%02X%02X%02X%02X", part[1], part[2], part[3], part[4]))
    }
    function add(hex) { any[hex] = any[zero zero "FFFF0000" hex] = any[zero zero "0000FFFF" hex] = 1 }
    $4 == "0A" && split($2, local, ":") == 2 && local[2] == port {
      address = local[1]
      loopback = any4 && (address ~ /^......7F$/ || address ~ /^7F......$/ ||
        substr(address, 1, 16) == zero zero && substr(address, 17, 8) ~ /FFFF/)
      if ((address in any || loopback) && !seen[$8]++) print $8
    }'
}

# With sudo, a user has the rights of root, so a vault of that user is trusted too, and the job remembers the user.
trust_sudo_user() {
  [ "$my_uid" -eq 0 ] && [ -n "${SUDO_UID:-}" ] && [ -z "$listener_user" ] || return 0
  listener_user=$SUDO_UID
  if is_listener_trusted && listener_user='' && ! is_listener_trusted && [ "$listener_problem" = stranger ]; then
    listener_user=$(user_name "$SUDO_UID")
  else
    listener_user=''
  fi
}

is_success() {
  [ "$http_status" = 200 ] || [ "$http_status" = 202 ]
}

# Some versions of sed ignore a last line without a line break.
percent_encode() {
  { cat && echo; } | sed 's/../%&/g'
}

scratch_full() {
  fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
}

byte_count() {
  wc -c <"$1" | tr -d ' '
}

# Secrets are written with `cat` and here-documents: where printf is not a builtin, they would be its arguments.
get_curl() {
  {
    [ "$authorized" = no ] || cat <<EOF
header = "Authorization: Bearer $api_key"
EOF
    [ -z "$keystore_code" ] || cat <<EOF
header = "Keystore-Password: UTF-8''$keystore_code"
EOF
  } >"$scratch/curl.config" || scratch_full
  set -- --silent --show-error --output "$2" --dump-header "$scratch/head" --proto "=$server_scheme" \
    --connect-timeout "$connect_seconds" --max-time "$fetch_seconds" --config "$scratch/curl.config" \
    ${3:+--header} ${3:+"If-None-Match: $3"}
  [ -z "$upload" ] || set -- "$@" --data-binary "@$upload" --header 'Content-Type: application/x-pem-file'
  [ "$ca" = no ] || set -- "$@" --cacert "$ca_path"
  [ -z "$pin" ] || set -- "$@" --pinnedpubkey "$pin"
  # With a pin and no CA file, the pinned key alone is trusted.
  [ -z "$pin" ] || [ "$ca" = yes ] || set -- "$@" --insecure
  ! is_loopback "$server_host" || set -- "$@" --noproxy '*'
  # -q must come first: a .curlrc could disable checks. --globoff: IPv6 addresses have brackets.
  limited_download "$((fetch_seconds + 5))" curl -q --globoff "$@" "$http_url" 2>"$scratch/error"
}

get_wget() {
  {
    [ "$authorized" = no ] || cat <<EOF
header = Authorization: Bearer $api_key
EOF
    [ -z "$keystore_code" ] || cat <<EOF
header = Keystore-Password: UTF-8''$keystore_code
EOF
  } >"$scratch/wgetrc" || scratch_full
  # --content-on-error keeps the problem in the body. It makes wget expect a body after 304 too, which ends with the
  # connection.
  set -- --server-response --no-verbose --content-on-error --no-http-keep-alive --output-document="$2" \
    --max-redirect=0 --tries=1 --no-netrc --no-hsts --no-cookies --timeout="$connect_seconds" --read-timeout="$fetch_seconds" ${3:+--header="If-None-Match: $3"}
  [ -z "$upload" ] || set -- "$@" --post-file="$upload" --header='Content-Type: application/x-pem-file'
  [ "$ca" = no ] || set -- "$@" --ca-certificate="$ca_path"
  [ -z "$pin" ] || set -- "$@" --pinnedpubkey="$pin"
  [ -z "$pin" ] || [ "$ca" = yes ] || set -- "$@" --no-check-certificate
  ! is_loopback "$server_host" || set -- "$@" --no-proxy
  limited_download "$fetch_seconds" wget --config="$scratch/wgetrc" "$@" "$http_url" 2>"$scratch/head"
  wget_exit=$?
  # The headers of the response are indented, and so are some explanations.
  bounded grep -v -e '^  HTTP/' -e '^  [A-Za-z0-9-]*:' "$scratch/head" >"$scratch/error"
  return "$wget_exit"
}

# HTTP/1.0 has no chunked encoding: the body ends when the connection closes.
write_request() {
  request_method=GET
  [ -z "$upload" ] || request_method=POST
  cat <<EOF || return 1
$request_method $server_path$1 HTTP/1.0$cr
Host: $server_authority$cr
User-Agent: certificate-vault-client$cr
Accept: */*$cr
Connection: close$cr
EOF
  [ "$authorized" = no ] || cat <<EOF || return 1
Authorization: Bearer $api_key$cr
EOF
  [ -z "$keystore_code" ] || cat <<EOF || return 1
Keystore-Password: UTF-8''$keystore_code$cr
EOF
  [ -z "$2" ] || cat <<EOF || return 1
If-None-Match: $2$cr
EOF
  [ -z "$upload" ] || cat <<EOF || return 1
Content-Type: application/x-pem-file$cr
Content-Length: $(byte_count "$upload")$cr
EOF
  cat <<EOF || return 1
$cr
EOF
  [ -z "$upload" ] || cat "$upload"
}

# split_answer BODY: splits the raw response into headers and body.
split_answer() {
  bounded sed "/^$cr\$/q" "$scratch/answer" >"$scratch/head"
  tail -c "+$(($(byte_count "$scratch/head") + 1))" "$scratch/answer" >"$1"
}

get_nc() {
  write_request "$1" "$3" >"$scratch/request" || scratch_full
  nc_request=$scratch/request
  # BusyBox nc closes its side of the connection at the end of its input, and many servers then send no response. A pipe
# that is also open for writing has no end.
  if nc --help 2>&1 </dev/null | grep BusyBox >/dev/null; then
    nc_request=$scratch/wire
    [ -p "$nc_request" ] || mkfifo "$nc_request"
  fi
  {
    [ "$nc_request" = "$scratch/request" ] || cat "$scratch/request" >&6
    limited_download "$fetch_seconds" nc "$server_host" "$server_port" <&6 >"$scratch/answer" 2>"$scratch/error"
  } 6<>"$nc_request"
  nc_exit=$?
  split_answer "$2"
  return "$nc_exit"
}

# -verify rejects a wrong certificate only together with -verify_return_error, and checks the name only on request.
get_openssl() {
  write_request "$1" "$3" >"$scratch/request" || scratch_full
  openssl_body=$2
  case $server_host in
    *:*) set -- -connect "[$server_host]:$server_port" -verify_ip "$server_host" ;;
    *[!0-9.]*) set -- -connect "$server_host:$server_port" -servername "$server_host" -verify_hostname "$server_host" ;;
    *) set -- -connect "$server_host:$server_port" -verify_ip "$server_host" ;;
  esac
  [ "$ca" = no ] || set -- "$@" -CAfile "$ca_path"
  limited_download "$fetch_seconds" openssl s_client -quiet -verify 10 -verify_return_error "$@" \
    <"$scratch/request" >"$scratch/answer" 2>"$scratch/error"
  # The exit code also depends on how the server closed the connection, so the length of the body decides instead.
  [ "$?" -ne 124 ] || return 124
  split_answer "$openssl_body"
}

# The last headers in the file are those of the response; a proxy's may come first.
parse_head() {
  http_status=000 http_version='' http_etag='' http_length='' http_location=''
  bounded awk '
    # Removing blanks from a long line takes some versions of awk minutes.
    length($0) > 1000 { next }
    { sub(/\r$/, ""); sub(/^[ \t]+/, "") }
    /^HTTP\/[0-9.]+ [0-9][0-9][0-9]/ { split("", field); status = $2; next }
    (colon = index($0, ":")) {
      value = substr($0, colon + 1); gsub(/^[ \t]+|[ \t]+$/, "", value)
      field[tolower(substr($0, 1, colon - 1))] = value
    }
    END {
      version = field["certificate-version"]; etag = field["etag"]; size = field["content-length"]
      # The awk of BSD and macOS needs the parentheses.
      print (status == "" ? "000" : status)
      print (version ~ /^[1-9][0-9]*$/ && length(version) < 10 ? version : "")
      print (etag ~ /^(W\/)?"[!#-~]*"$/ && length(etag) < 200 ? etag : "")
      print (size ~ /^[0-9]+$/ ? size : "")
      gsub(/[^!-~]/, "", field["location"])
      print substr(field["location"], 1, 200)
    }' "$scratch/head" >"$scratch/head.values" || scratch_full
  {
    IFS= read -r http_status && IFS= read -r http_version && IFS= read -r http_etag && IFS= read -r http_length &&
      IFS= read -r http_location
  } <"$scratch/head.values" || scratch_full
}

# get_with_retries PATH BODY [ETAG]: ends the run unless the status is 200 or 304.
get_with_retries() {
  try_get "$@" || fetch_failed "$http_failure"
}

# try_get PATH BODY [ETAG]: retries if that can help. Succeeds if the status is 200 or 304, or 202 for an upload; otherwise
# sets http_failure to a message that says what failed and what to do.
try_get() {
  tries=0
  while :; do
    http_get "$@"
    tries=$((tries + 1))
    case $http_status${upload:+-upload} in
      200 | 304 | 202-upload) return ;;
      000*)
        explain_connection
        case $http_cause in
          untrusted | name | expired | early | pin | large | stranger) break ;;
        esac
        [ "$tries" -lt "$fetch_tries" ] || break
        ;;
      408* | 429* | 5??*) [ "$tries" -lt "$fetch_tries" ] || break ;;
      *) break ;;
    esac
    sleep "$((pause_seconds * tries))"
  done
  if [ "$http_status" != 000 ]; then
    http_hint=''
    explain_status "$1" "$2"
  elif [ "$tries" -gt 1 ]; then
    http_error="$http_error ($tries attempts)"
  fi
  http_failure="$http_url: $http_error${http_hint:+$newline$http_hint}"
  return 1
}

# explain_status PATH BODY: sets http_error and http_hint for a response that is not a success.
explain_status() {
  http_detail=$(problem_detail "$2")
  ! explain_local_key "$1" "$2" || return 0
  case $http_status in
    401)
      http_error="401: the API key is unknown, revoked or expired"
      [ "$action" = set-key ] || http_hint="Fix: create the job again with a new key, or replace the key of all jobs with --set-key"
      ;;
    403) http_error="403: the API key has no permission for this file\
${http_detail:-; it needs the scope, and the certificate in its allowlist}" ;;
    404) http_error="404: certificate \"$certificate\" or this version not found" ;;
    409) http_error="409: certificate \"$certificate\" has not been issued yet" ;;
    3??)
      http_error="refused to follow a redirect to $http_location with the API key"
      case $http_location in
        http*://?*"$1") http_hint="Try: --server ${http_location%"$1"}, if that is the vault" ;;
        *) http_hint="Try: that address as --server, if it is the vault" ;;
      esac
      ;;
    *)
      http_error="unexpected status $http_status$http_detail"
      case $server_scheme-$http_detail in
        # The vault serves HTTPS now, and says where if it knows.
        http-*HTTPS* | http-*https://*)
          new_server=$(printf '%s\n' "$http_detail" | sed -n 's|.*\(https://[A-Za-z0-9[][]A-Za-z0-9.:[-]*\).*|\1|p')
          http_hint="Try: --server ${new_server:-https://$server_authority$server_path}"
          http_hint=${http_hint%.}
          ;;
      esac
      ;;
  esac
}

# explain_local_key PATH BODY: the same for responses that have to do with local keys. Fails for others.
explain_local_key() {
  case $http_status-${local_key:+local}-$1 in
    404-*)
      [ "$(json_values "$2" code)" != private_key_not_held ] || {
        http_error="404: the vault does not hold the private key of certificate \"$certificate\", because its certificate \
signing request came from outside"
        http_hint="Try: --local-key, if this machine is the only one that uses the certificate"
        return 0
      }
      ;;
  esac
  case $http_status-${local_key:+local}-$1 in
    403-local-*)
      http_error="403: the API key has no permission for this request$http_detail"
      case $http_detail in *"lacks the scope"*) hint_sign_scope ;; esac
      ;;
    404-local-*/sign)
      http_error="404: this vault does not sign certificate signing requests of clients"
      http_hint="Try: upgrade the vault, or create the job without --local-key"
      ;;
    400-local-*/sign) http_error="400: the vault rejected the certificate signing request$http_detail" ;;
    409-local-*/sign) http_error="409: the vault cannot sign for this certificate$http_detail" ;;
    *) return 1 ;;
  esac
}

hint_sign_scope() {
  http_hint="Fix: on the vault, create a key with both scopes, and use it here:
vault api-key create --name NAME --certificate '$certificate' --scope certificates:sign --scope certificates:read"
}

# Prints ": " and the `detail` of the problem (RFC 9457) in the body, if there is one. The server may not be the vault, so
# only printable characters of a limited length.
problem_detail() {
  one_line 5000 "$1" | bounded awk '
    { text = $0 }
    END {
      if (!match(text, /"detail" *: *"/)) exit
      text = substr(text, RSTART + RLENGTH, 600)
      for (at = 1; at <= length(text) && (letter = substr(text, at, 1)) != "\""; at++) {
        if (letter == "\\") {
          letter = substr(text, ++at, 1)
          if (letter == "u") { letter = "?"; at += 4 } else if (letter ~ /[a-z]/) letter = " "
        }
        detail = detail letter
      }
      gsub(/[^ -~]/, "", detail)
      sub(/\.$/, "", detail)
      if (detail != "") print ": " detail
    }'
}

# one_line BYTES FILE: prints the beginning of the file as one line. Some versions of awk need minutes to join many lines.
one_line() {
  dd if="$2" bs="$1" count=1 2>/dev/null | tr '\n' ' '
  echo
}

# json_values FILE KEY: prints the value of a key of the JSON object in the file: a text, number or word, or each of them in
# an array, one per line. Prints texts as they are written, with escapes. The server may not be the vault, so the rest is
# only skipped.
json_values() {
  one_line 200000 "$1" | bounded awk -v key="$2" '
    { text = $0 }
    END {
      gsub(/[^ -~]/, " ", text)
      while (text != "") {
        if (match(text, /^[ ,:]+/)) size = RLENGTH
        else if (match(text, /^[{[]/)) { kind[++depth] = substr(text, 1, 1); size = 1 }
        else if (match(text, /^[]}]/)) { depth--; size = 1 }
        else if (match(text, /^"([^"\\]|\\.)*"/)) {
          size = RLENGTH
          if (substr(text, size + 1) ~ /^ *:/) { if (depth == 1) field = substr(text, 2, size - 2) }
          else show(substr(text, 2, size - 2))
        }
        else if (match(text, /^[^][{}",: ]+/)) { size = RLENGTH; show(substr(text, 1, size)) }
        else exit
        text = substr(text, size + 1)
      }
    }
    function show(value) {
      if (field == key && (depth == 1 || depth == 2 && kind[2] == "[")) print value
    }'
}

# Sets http_cause, http_error and http_hint for a request without a response.
explain_connection() {
  http_cause=$(connection_cause)
  [ "$http_cause" != connect ] || why_not_connected
  http_hint=''
  server_place="$server_host port $server_port"
  case $http_cause in
    resolve)
      http_error="cannot resolve the host name $server_host"
      http_hint="Try: --server with another address, or fix the name in DNS"
      ;;
    proxy) http_error="cannot resolve the host name of the proxy; see the variables http_proxy and https_proxy" ;;
    refused)
      http_error="$server_place refused the connection"
      http_hint="Try: start the vault, or --server with the right port"
      ;;
    unreachable) http_error="no route to $server_host" ;;
    connect)
      http_error="cannot connect to $server_place"
      http_hint="Try: start the vault, or --server with the right address and port"
      ;;
    connect-timeout)
      http_error="no connection to $server_place within $connect_seconds seconds"
      http_hint="Try: check the address, and whether a firewall drops the connection"
      ;;
    tls-timeout) http_error="$server_place accepted the connection, but no TLS handshake within $connect_seconds seconds" ;;
    stranger)
      http_error="a process of user $listener_name listens on $server_place, not root, vault or the user of this job, so nothing was sent"
      http_hint="Try: --listener-user $listener_name, if that user runs the vault or a proxy of it, or https"
      ;;
    large)
      http_error="$http_error, so it does not come from a vault"
      http_hint="Try: --server with the address of the vault; another program may use $server_place"
      ;;
    timeout) http_error="no complete response within $fetch_seconds seconds" ;;
    untrusted)
      if [ "$ca" = yes ]; then
        http_error="the certificate of $server_place is not signed by the CA in --ca-file"
        http_hint="Try: --ca-file with the root certificate that signed it"
      else
        http_error="this machine does not trust the certificate of $server_place: its CA is unknown"
        http_hint="Try: --ca-file with the root certificate of that CA, or --pin"
      fi
      http_hint="$http_hint; \"vault certificate show --name NAME\" prints the pin"
      ;;
    name)
      http_error="the certificate of $server_place is not valid for the name $server_host"
      http_hint="Try: --server with a name in that certificate, or --pin instead of --ca-file"
      ;;
    expired)
      http_error="the certificate of $server_place has expired, and this machine's clock says $(date -u)"
      http_hint="Fix: renew it on the vault, or set the clock"
      ;;
    early)
      http_error="the certificate of $server_place is not valid yet, and this machine's clock says $(date -u)"
      http_hint="Fix: set the clock"
      ;;
    pin)
      http_error="the public key of $server_place does not match --pin"
      http_hint="Try: --pin with the current key; on the vault, \"vault certificate show --name NAME\" prints it"
      ;;
    plain)
      http_error="$server_place does not speak TLS"
      http_hint="Try: --server with the port for HTTPS"
      ;;
    dropped)
      http_error="$server_place closed the connection before its response was complete"
      [ "$server_scheme" = https ] || http_hint="Try: --server https://$server_authority$server_path, if the vault serves HTTPS now"
      ;;
    *) http_error=${http_error:-the connection failed} ;;
  esac
  case $http_cause-$server_scheme-${http_proxy:-}-${https_proxy:-}${HTTPS_PROXY:-}-${all_proxy:-}${ALL_PROXY:-} in
    *-http--*- | *-https-*--) ;;
    resolve-* | refused-* | unreachable-* | connect-* | dropped-*)
      is_loopback "$server_host" || http_error="$http_error; the request may go through the proxy that the environment names"
      ;;
  esac
}

# Prints the cause as one word; nothing if it is unknown. curl has exit codes for most causes. Other programs only have
# messages, and so have the libraries for TLS.
connection_cause() {
  bounded awk -v tool="$tool" -v code="$http_exit" -v first="$http_error" '
    function is(pattern, name) { if (cause == "" && text ~ pattern) cause = name }
    { text = text " " tolower($0) }
    END {
      if (code == "short") exit
      if (code == "large" || code == "stranger") { print code; exit }
      if (code == "absent") { print "refused"; exit }
      if (code == 124) { print "timeout"; exit }
      if (tool == "curl") {
        text = tolower(first)
        if (code == 28) {
          is("resolving timed out", "resolve")
          is("ssl connection timeout", "tls-timeout")
          is("operation timed out", "timeout")
          if (cause == "") cause = "connect-timeout"
        }
        if (code == 5) cause = "proxy"
        if (code == 6) cause = "resolve"
        if (code == 90) cause = "pin"
        if (code == 51) cause = "name"
      }
      # With other exit codes, wget only warned.
      if (tool != "wget" || code == 5) {
        is("pinned public key", "pin")
        is("not yet valid|not yet activated", "early")
        is("expired", "expired")
        is("subject.*name|common name|not match|hostname mismatch|address mismatch", "name")
        is("local issuer|known issuer|issuer.s authority|self.signed|not trusted|certificate problem", "untrusted")
        is("verification failed|verify error|verify failed|cannot verify|unknown ca", "untrusted")
        if (cause == "" && (tool == "curl" && code == 60 || tool == "wget")) cause = "untrusted"
      }
      is("wrong version number|unexpected tls packet|packet length too long|unknown protocol", "plain")
      is("could not resolve|unable to resolve|bad address|name or service|not known|name resolution|getaddrinfo|nodename", "resolve")
      is("read error .connection timed out", "timeout")
      is("refused|errno=111|errno=61", "refused")
      is("no route|unreachable|errno=113|errno=101", "unreachable")
      is("timed out|errno=110", "connect-timeout")
      if (cause == "" && tool == "curl" && code == 7) cause = "connect"
      is("reset|empty reply|no data received|closed|http/0\\.9|unexpected eof|failure when receiving", "dropped")
      # Some versions of nc say nothing.
      if (cause == "" && tool == "nc") cause = code == 0 ? "dropped" : "connect"
      if (cause != "") print cause
    }' "$scratch/error"
}

# Newer versions of curl have the reason only in their verbose output. This request has no key.
why_not_connected() {
  [ "$tool" = curl ] || return 0
  set -- --silent --verbose --head --output /dev/null --proto "=$server_scheme" --max-time "$connect_seconds"
  ! is_loopback "$server_host" || set -- "$@" --noproxy '*'
  limited_download "$((connect_seconds + 5))" curl -q --globoff "$@" "$server/" >/dev/null 2>"$scratch/probe"
  bounded grep -i -e failed "$scratch/probe" >"$scratch/error"
  http_cause=$(tool='' connection_cause)
  [ -n "$http_cause" ] || http_cause=connect
}

# ---------------------------------------------------------------------------------------------------------------------
# A run: download

# Each installed file has a line in `state` (or in `pending` until the reload succeeds) with version, ETag, checksum,
# artifact and output name, separated by tabs.

checksum() {
  cksum <"$1" | tr ' ' ':'
}

# look_up ARTIFACT OUTPUT: sets known_etag and known_sum if the file on disk is the installed one; leaves them empty if it
# is missing or changed. The checksum detects accidents, not an attack by root.
look_up() {
  known_etag='' known_sum=''
  [ -f "$disk/$2" ] && [ ! -h "$disk/$2" ] && [ -r "$disk/$2" ] || return 0
  disk_sum=$(checksum "$disk/$2")
  for known_file in "$run_state/pending" "$run_state/state"; do
    if [ -r "$known_file" ] && find_row "$known_file" "$1" "$2" && [ "$row_sum" = "$disk_sum" ]; then
      known_etag=$row_etag known_sum=$row_sum
      return 0
    fi
  done
}

# find_row ROWS ARTIFACT OUTPUT: sets row_version, row_etag and row_sum. Fails if the list does not have the file, or ends within its
# line.
find_row() {
  while IFS=$tab read -r row_version row_etag row_sum row_artifact row_output <&4; do
    [ "$row_artifact" != "$2" ] || [ "$row_output" != "$3" ] || return 0
  done 4<"$1"
  return 1
}

# The first response, 200 or 304, has the current version. All other requests ask for that version, so that the files
# belong together even if the vault renews in between.
fetch_all() {
  pinned=$chain_version fetched=no
  true >"$scratch/next" || scratch_full
  authorized=yes
  for line in $files; do
    artifact=${line%% *} output=${line#* }
    look_up "$artifact" "$output"
    if [ -n "$local_key" ] && from_local_key; then
      add_row
      continue
    fi
    get_with_retries "/api/v1/certificates/$certificate/$artifact${pinned:+?version=$pinned}" "$staging/$output" "$known_etag"
    [ -n "$http_version" ] || fetch_failed "$http_url: not a response of the vault: no Certificate-Version header"
    [ -z "$pinned" ] || [ "$http_version" = "$pinned" ] ||
      fetch_failed "$http_url: requested version $pinned, but the server sent version $http_version"
    pinned=$http_version
    if [ "$http_status" = 304 ]; then
      [ -n "$known_etag" ] || fetch_failed "$http_url: unexpected status 304"
      rm -f "$staging/$output"
      next_etag=$known_etag next_sum=$known_sum
    else
      if is_der "$artifact"; then check_der "$artifact" "$staging/$output"; else check_pem "$artifact" "$staging/$output"; fi
      [ -n "$http_etag" ] || fetch_failed "$http_url: not a response of the vault: no ETag header"
      next_etag=$http_etag next_sum=$(checksum "$staging/$output") fetched=yes
    fi
    add_row
  done
  authorized=no
}

# Adds the file to the list of the files of this run.
add_row() {
  cat <<EOF >>"$scratch/next" || scratch_full
$pinned$tab$next_etag$tab$next_sum$tab$artifact$tab$output
EOF
  find_row "$scratch/next" "$artifact" "$output" || scratch_full
}

# A pending reload does not wait until the vault is reachable, if the files on disk are the ones it is pending for.
fetch_failed() {
  if [ -n "$run_state" ] && [ -e "$run_state/pending" ] && disk_is "$run_state/pending"; then
    warn "$1"
    reload_and_verify
    commit "$run_state/pending"
  fi
  fail "$exit_fetch" "$1"
}

# disk_is ROWS: whether every file of the job on disk matches the list. Fails if the list is incomplete, such as after a
# power cut.
disk_is() {
  [ -r "$1" ] || return 1
  for disk_line in $files; do
    find_row "$1" "${disk_line%% *}" "${disk_line#* }" || return 1
    disk_file=$disk/${disk_line#* }
    [ -f "$disk_file" ] && [ ! -h "$disk_file" ] && [ "$(checksum "$disk_file")" = "$row_sum" ] || return 1
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# A run: the local key
#
# With --local-key, the vault gets certificate signing requests and never a private key. In the job's state, `local-key` has
#   current.pem  the key of the installed certificate; a line before the PEM has the time when it was generated, and its type
#   next.pem     its successor, from before its request is sent until its certificate is installed
#   fullchain.pem, fullchain   the full chain of the vault's current version, and its version, ETag and checksum
#   request.pem, request.conf   the request for next.pem, and what openssl made it from
#   requested    exists once that request may have been sent
#   taken        how often in a row the job requested a certificate because the vault had one for the key of someone else:
#                one letter each
# The vault may issue for both keys at any time: it renews with the last request by itself. Therefore next.pem is on disk
# before its request is sent, the key is chosen by the certificate, and current.pem is replaced, by a rename, only after the
# certificate for next.pem is in place. Everything else can be lost or repeated.

# How many requests in a row may replace the certificate of someone else.
most_taken=3

# The number of names in a request. Each takes several processes.
most_names=1000

prepare_local_key() {
  [ "$has_openssl" = yes ] || fail 1 "--local-key needs the openssl program, which is not installed"
  local_directory=$run_state/local-key
  mkdir -p "$local_directory" || fail "$exit_write" "cannot write to $run_state"
  check_local_files
  (set +f; rm -f "$local_directory"/*.new)
  [ -e "$local_directory/next.pem" ] || forget_request
  authorized=yes
  get_chain
  choose_local_key
  case $local_reason in
    due)
      # The certificate is still valid, and the vault renews it with the same key if this fails for long.
      rm -f "$local_directory/taken"
      request_certificate || late_failure=$sign_failure
      ;;
    none | other)
      [ "$local_reason" = none ] || check_taken
      request_certificate || fetch_failed "$sign_failure"
      ;;
  esac
  authorized=no
  [ -n "$local_path" ] || fail "$exit_check" "$(taken_message); nothing was changed"
}

check_local_files() {
  { [ -d "$local_directory" ] && [ ! -h "$local_directory" ]; } ||
    fail "$exit_write" "$local_directory is not a directory; remove it, and run the job again"
  for part in current.pem next.pem fullchain.pem fullchain request.pem request.conf requested taken; do
    is_plain "$local_directory/$part" || fail "$exit_write" "$local_directory/$part is not a file; remove it, and run the job again"
  done
}

# Gets the full chain of the current version into the scratch directory. Sets chain_version and chain_etag, or leaves them
# empty if nothing has been issued yet. The copy in the job's state saves downloads.
get_chain() {
  chain_version='' chain_etag='' chain_sum=''
  if [ -f "$local_directory/fullchain.pem" ] && [ -f "$local_directory/fullchain" ]; then
    IFS=$tab read -r chain_version chain_etag chain_sum <"$local_directory/fullchain" || chain_etag=''
    [ "$chain_sum" = "$(checksum "$local_directory/fullchain.pem")" ] || chain_etag=''
  fi
  chain_version=''
  if ! try_get "/api/v1/certificates/$certificate/fullchain.crt" "$scratch/fullchain.pem" "$chain_etag"; then
    [ "$http_status" = 409 ] || fetch_failed "$http_failure"
    chain_etag=''
    return 0
  fi
  [ -n "$http_version" ] || fetch_failed "$http_url: not a response of the vault: no Certificate-Version header"
  if [ "$http_status" = 304 ]; then
    [ -n "$chain_etag" ] || fetch_failed "$http_url: unexpected status 304"
    cp "$local_directory/fullchain.pem" "$scratch/fullchain.pem" || scratch_full
  else
    check_pem fullchain.crt "$scratch/fullchain.pem"
    [ -n "$http_etag" ] || fetch_failed "$http_url: not a response of the vault: no ETag header"
    chain_etag=$http_etag
    replace_state "$scratch/fullchain.pem" "$local_directory/fullchain.pem"
  fi
  chain_version=$http_version
  cat <<EOF >"$scratch/fullchain" || scratch_full
$chain_version$tab$chain_etag$tab$(checksum "$scratch/fullchain.pem")
EOF
  cmp -s "$scratch/fullchain" "$local_directory/fullchain" || replace_state "$scratch/fullchain" "$local_directory/fullchain"
}

# Sets local_path to the key of the vault's certificate, or to nothing, and local_reason to the reason for a request:
# `none` if this job has had no certificate or the vault has none, `other` if the key is someone else's, `due`, or nothing.
choose_local_key() {
  local_path='' local_reason=''
  if [ -n "$chain_version" ]; then
    leaf_key=$(bounded openssl x509 -noout -pubkey -in "$scratch/fullchain.pem" 2>/dev/null </dev/null)
    [ -n "$leaf_key" ] || fail "$exit_check" "the server sent a certificate that openssl cannot parse"
    for part in next.pem current.pem; do
      if [ -f "$local_directory/$part" ] && [ "$(public_part "$local_directory/$part")" = "$leaf_key" ]; then
        local_path=$local_directory/$part
        break
      fi
    done
  fi
  if [ -z "$local_path" ]; then
    local_reason=none
    [ -z "$chain_version" ] || [ -z "$(public_part "$local_directory/current.pem")" ] || local_reason=other
  elif [ "$local_path" = "$local_directory/current.pem" ] && is_local_key_due; then
    local_reason=due
  fi
}

public_part() {
  bounded openssl pkey -pubout -in "$1" 2>/dev/null </dev/null
}

# Sets key_created and key_type.
read_local_key() {
  key_created='' key_type=''
  IFS=' ' read -r key_word key_created key_type <"$1" || :
  case $key_word-$key_created in created-*[!0-9]* | created-) key_created='' ;; created-*) ;; *) key_created='' key_type='' ;; esac
}

# A key is replaced when it is older than 55 to 60 percent of the certificate's lifetime, or 35 to 40 percent if that is
# shorter than ten days: before the vault renews with the same key, or soon after. The job's id sets the exact share.
is_local_key_due() {
  read_local_key "$local_path"
  [ "$key_type" = "$local_key" ] || return 0
  due_share=$(printf '%s' "$job_id" | cksum | cut -d ' ' -f 1)
  awk -v share="$((due_share % 6))" -v now="$(date -u '+%Y%m%d%H%M%S')" -v created="$key_created" \
    -v begins="$(not_before "$scratch/fullchain.pem")" -v ends="$(not_after "$scratch/fullchain.pem")" '
    # Years begin in March here, so that February 29 is the last day.
    function seconds(time,   y, m, d) {
      y = substr(time, 1, 4) + 0; m = substr(time, 5, 2) + 0; d = substr(time, 7, 2) + 0
      if (m < 3) { y--; m += 12 }
      d += 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5)
      return d * 86400 + substr(time, 9, 2) * 3600 + substr(time, 11, 2) * 60 + substr(time, 13, 2)
    }
    BEGIN {
      if (begins == "" || ends == "") exit 1
      lifetime = seconds(ends) - seconds(begins)
      share += lifetime < 864000 ? 35 : 55
      since = begins
      # A time in the future comes from a wrong clock.
      if (created != "" && seconds(created) < seconds(since)) since = created
      exit !((seconds(now) - seconds(since)) * 100 > lifetime * share)
    }' </dev/null
}

# Two machines with one certificate would replace each other's certificates forever.
check_taken() {
  taken_count=$([ ! -f "$local_directory/taken" ] || byte_count "$local_directory/taken")
  [ "${taken_count:-0}" -lt "$most_taken" ] || fail "$exit_check" "$(taken_message), and this job has requested another one \
$most_taken times already; nothing was changed
Fix: use --local-key on one machine per certificate, and run the command that created this job again on that machine"
  warn "$(taken_message); requesting a certificate for this machine again"
}

count_taken() {
  {
    [ ! -f "$local_directory/taken" ] || cat "$local_directory/taken"
    printf x
  } >"$scratch/taken" || scratch_full
  replace_state "$scratch/taken" "$local_directory/taken"
}

taken_message() {
  printf '%s\n' "the certificate in the vault (version ${chain_version:-none}) is for the private key of someone else, not for one of \
this machine: another machine or person had it signed, or it was issued with a key of the vault"
}

# Sends a request for the next key and waits for the certificate. On failure sets sign_failure. A renewal that was open
# already may issue for an older request; then the request is sent once more.
request_certificate() {
  is_taking=no
  [ "$local_reason" != other ] || is_taking=yes
  make_next_key
  make_request || return 1
  was_requested=yes
  [ -e "$local_directory/requested" ] || was_requested=no
  true >"$local_directory/requested" || fail "$exit_write" "cannot write to $local_directory"
  requests=0
  while [ "$requests" -lt 2 ]; do
    requests=$((requests + 1))
    upload=$local_directory/request.pem
    try_get "/api/v1/certificates/$certificate/sign" "$scratch/renewal"
    sign_status=$?
    upload=''
    if [ "$sign_status" -ne 0 ]; then
      sign_failure=$http_failure
      # The vault refused the request, so it cannot issue for it.
      case $requests-$was_requested-$http_status in 1-no-4*) rm -f "$local_directory/requested" ;; esac
      return 1
    fi
    was_requested=yes
    [ "$is_taking" = no ] || count_taken
    wait_for_certificate || return 1
    get_chain
    choose_local_key
    if [ -n "$local_path" ] && [ "$local_path" = "$local_directory/next.pem" ]; then return 0; fi
  done
  sign_failure="the vault issued version ${chain_version:-none}, but not for the key of this request"
  return 1
}

# Checks immediately whether the API key may send requests, which a run does only every few weeks. Fails with http_failure.
check_sign_scope() {
  authorized=yes
  if ! try_get /api/v1/whoami "$scratch/whoami"; then
    # Version 0.1.0 has no such path; the request itself has the last word.
    [ "$http_status" = 404 ] || return 1
    return 0
  fi
  for scope in certificates:read certificates:sign; do
    json_values "$scratch/whoami" scopes | grep -F -x -e "$scope" >/dev/null && continue
    hint_sign_scope
    http_failure="the API key lacks the scope $scope, which --local-key needs$newline$http_hint"
    return 1
  done
}

# Generates next.pem, unless there is one of the right type that openssl can read.
make_next_key() {
  next_path=$local_directory/next.pem
  if [ -f "$next_path" ]; then
    read_local_key "$next_path"
    if [ "$key_type" = "$local_key" ] && [ -n "$(public_part "$next_path")" ]; then return 0; fi
  fi
  case $local_key in
    ec256) set -- -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:named_curve ;;
    ec384) set -- -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -pkeyopt ec_param_enc:named_curve ;;
    *) set -- -algorithm RSA -pkeyopt "rsa_keygen_bits:${local_key#rsa}" ;;
  esac
  openssl genpkey "$@" -out "$scratch/generated.pem" >/dev/null 2>"$scratch/error" </dev/null ||
    fail 1 "openssl cannot generate a private key: $(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]')"
  check_pem private.key "$scratch/generated.pem"
  {
    cat <<EOF && cat "$scratch/generated.pem"
created $(date -u '+%Y%m%d%H%M%S') $local_key
EOF
  } >"$scratch/next.pem" || scratch_full
  [ "$(public_part "$scratch/next.pem")" = "$(public_part "$scratch/generated.pem")" ] || scratch_full
  forget_request
  replace_state "$scratch/next.pem" "$next_path"
  rm -f "$scratch/next.pem" "$scratch/generated.pem"
}

# Writes a certificate signing request for next.pem with the names that the vault has. The server may not be the vault, and
# the configuration of openssl has special characters. An unchanged request is kept, because signatures differ each time, and
# the vault would start again with another request.
make_request() {
  try_get "/api/v1/certificates/$certificate" "$scratch/metadata" || {
    sign_failure=$http_failure
    return 1
  }
  {
    cat <<EOF
[req]
prompt = no
distinguished_name = subject
req_extensions = extensions
[subject]
[extensions]
subjectAltName = @names
[names]
EOF
    name_count=0
    for kind in domains uris emails; do
      for name in $(json_values "$scratch/metadata" "$kind"); do
        name_count=$((name_count + 1))
        [ "$name_count" -le "$most_names" ] || break 2
        name_type=$(name_type "$kind" "$name")
        [ -n "$name_type" ] || {
          sign_failure="the vault has a name that this script cannot request: $(printf '%s\n' "$name" | cut -c 1-300)"
          return 1
        }
        cat <<EOF
$name_type.$name_count = $(escape_name "$name")
EOF
      done
    done
  } >"$scratch/request.conf" || scratch_full
  [ "$name_count" -gt 0 ] || {
    sign_failure="the vault has no names for certificate \"$certificate\""
    return 1
  }
  [ "$name_count" -le "$most_names" ] || {
    sign_failure="the vault has more than $most_names names for certificate \"$certificate\""
    return 1
  }
  if [ -f "$local_directory/request.pem" ] && cmp -s "$scratch/request.conf" "$local_directory/request.conf" &&
    [ "$(requested_key "$local_directory/request.pem")" = "$(public_part "$local_directory/next.pem")" ]; then
    return 0
  fi
  openssl req -new -sha256 -key "$local_directory/next.pem" -config "$scratch/request.conf" -subj / \
    -out "$scratch/request.pem" >/dev/null 2>"$scratch/error" </dev/null ||
    fail 1 "openssl cannot create a certificate signing request: $(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]')"
  [ "$(requested_key "$scratch/request.pem")" = "$(public_part "$local_directory/next.pem")" ] || scratch_full
  replace_state "$scratch/request.pem" "$local_directory/request.pem"
  replace_state "$scratch/request.conf" "$local_directory/request.conf"
}

requested_key() {
  openssl req -noout -pubkey -in "$1" 2>/dev/null </dev/null
}

# Prints the type of a name in the configuration of openssl; nothing if the name is not safe there. JSON has a backslash
# only as an escape.
name_type() {
  case $1-$2 in
    domains-*[!A-Za-z0-9.:_*-]* | *[!!-~]* | *\\*) ;;
    domains-*:*) echo IP ;;
    domains-*[!0-9.]*) echo DNS ;;
    domains-*) echo IP ;;
    uris-*) echo URI ;;
    emails-*) echo email ;;
  esac
}

# The configuration of openssl has variables, comments and quotes, also in the middle of a line.
escape_name() {
  cat <<EOF | sed 's/[$#"`'\'']/\\&/g'
$1
EOF
}

# Waits until the renewal that the vault described in $scratch/renewal has succeeded.
wait_for_certificate() {
  renewal_id=$(json_values "$scratch/renewal" id)
  [ "${#renewal_id}" -le 64 ] || renewal_id=''
  case $renewal_id in
    '' | *[!A-Za-z0-9_-]*)
      sign_failure="$http_url: not a response of the vault: no renewal"
      return 1
      ;;
  esac
  waited=0 wait_seconds=1
  while :; do
    sleep "$wait_seconds"
    waited=$((waited + wait_seconds))
    try_get "/api/v1/certificates/$certificate/renewals/$renewal_id" "$scratch/renewal" || {
      sign_failure=$http_failure
      return 1
    }
    case $(json_values "$scratch/renewal" status) in
      succeeded) return 0 ;;
      queued | running) ;;
      failed)
        sign_failure="the vault failed to issue the certificate: $(json_values "$scratch/renewal" error | cut -c 1-600)"
        return 1
        ;;
      *)
        sign_failure="$http_url: not a response of the vault: no renewal"
        return 1
        ;;
    esac
    if [ "$waited" -ge "$sign_seconds" ]; then
      sign_failure="the vault has not issued the certificate within $sign_seconds seconds; the next run continues"
      return 1
    fi
    wait_seconds=$((wait_seconds * 2))
    [ "$wait_seconds" -le 30 ] || wait_seconds=30
    [ "$((waited + wait_seconds))" -le "$sign_seconds" ] || wait_seconds=$((sign_seconds - waited))
  done
}

# Makes a file of the run from the local key or the full chain that the run has. Fails for other artifacts.
from_local_key() {
  next_etag='local'
  case $artifact in
    fullchain.crt | fullchain.pem)
      cp "$scratch/fullchain.pem" "$staging/$output" || fail "$exit_write" "cannot write to $destination"
      next_etag=$chain_etag
      ;;
    private.key | private-key.pem) plain_key >"$staging/$output" || fail "$exit_write" "cannot write to $destination" ;;
    combined.pem)
      { plain_key && cat "$scratch/fullchain.pem"; } >"$staging/$output" || fail "$exit_write" "cannot write to $destination"
      ;;
    keystore.p12)
      # Each keystore has another salt, so one that is right stays.
      if keeps_keystore; then
        next_sum=$known_sum
        return 0
      fi
      bounded openssl pkcs12 -export -keypbe AES-256-CBC -certpbe AES-256-CBC -macalg sha256 -name "$certificate" \
        -passout "file:$job_directory/keystore-password" -inkey "$local_path" -in "$scratch/fullchain.pem" \
        -out "$staging/$output" >/dev/null 2>"$scratch/error" </dev/null ||
        fail "$exit_check" "openssl cannot create keystore.p12: $(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]')"
      check_der "$artifact" "$staging/$output"
      ;;
    *) return 1 ;;
  esac
  is_der "$artifact" || check_pem "$artifact" "$staging/$output"
  next_sum=$(checksum "$staging/$output")
}

plain_key() {
  sed -n '/^-----BEGIN /,$p' "$local_path"
}

# Whether the keystore on disk is of this version and opens with the password of the job.
keeps_keystore() {
  [ -n "$known_sum" ] && [ "$row_version" = "$pinned" ] && to_pem keystore.p12 "$disk/$output" "$scratch/old.pem" &&
    [ "$(fingerprint <"$scratch/old.pem")" = "$(fingerprint <"$scratch/fullchain.pem")" ]
  keeps_status=$?
  rm -f "$scratch/old.pem"
  return "$keeps_status"
}

# The certificate for the next key is in place: forget the key before it.
promote_local_key() {
  [ "$local_path" = "$local_directory/next.pem" ] || return 0
  { to_disk "$local_path" && mv -f "$local_path" "$local_directory/current.pem" && to_disk "$local_directory"; } ||
    fail "$exit_write" "cannot write to $local_directory"
  local_path=$local_directory/current.pem
  forget_request
}

forget_request() {
  rm -f "$local_directory/requested" "$local_directory/request.pem" "$local_directory/request.conf"
}

# Removes the keys of a job that has been replaced by one without --local-key.
remove_local_keys() {
  [ -n "$local_key" ] || [ -d "$job_directory/old" ] || rm -rf "${state_root:?}/$job_id/local-key"
}

# ---------------------------------------------------------------------------------------------------------------------
# A run: trust

# If the job trusts a root of this vault, its CA file follows /client/ca.crt: during a rotation of the private CA the vault
# serves both roots, and from then on the new one. Other certificates in the file stay. The files of this run were
# downloaded already, so that a failure is a warning.
refresh_ca() {
  if [ "$ca" = no ] || [ "$server_scheme" != https ]; then return 0; fi
  rm -f "$ca_path.new"
  ca_mark="# The vault's roots at $server, which each run of the job updates:"
  http_get /client/ca.crt "$scratch/ca.crt"
  ca_change=invalid
  if [ "$http_status" = 200 ]; then ca_change=$(next_ca) || ca_change=invalid; fi
  case $ca_change in
    invalid)
      # Without the mark, nothing says that the file has a root of this vault.
      ! grep -F -x "$ca_mark" "$ca_path" >/dev/null 2>&1 ||
        warn "cannot update the roots in $ca_path: $http_url: ${http_error:-status $http_status, or not certificates in PEM format}"
      return 0
      ;;
    unrelated) return 0 ;;
  esac
  ! is_same_file "$scratch/ca.pem" "$ca_path" || return 0
  # The next run must trust the vault too.
  ca_kept=$ca_path ca_path=$scratch/ca.pem
  http_get /client/ca.crt "$scratch/ca.crt"
  ca_path=$ca_kept
  if [ "$http_status" != 200 ]; then
    warn "kept the roots in $ca_path, because the vault's own certificate is not signed by one that it serves now: $http_url: $http_error"
  elif {
    cp "$scratch/ca.pem" "$ca_path.new" && is_same_file "$scratch/ca.pem" "$ca_path.new" && chmod 0600 "$ca_path.new" &&
      to_disk "$ca_path.new" && mv -f "$ca_path.new" "$ca_path" && to_disk "$job_directory"
  } 2>/dev/null; then
    [ "$ca_change" = same ] || info "the roots of the private CA changed; updated $ca_path"
  else
    rm -f "$ca_path.new" 2>/dev/null
    warn "cannot update the roots in $ca_path: cannot write to $job_directory"
  fi
}

is_same_file() {
  [ "$(checksum "$1")" = "$(checksum "$2")" ]
}

# Writes the next CA file to the scratch directory: what the user added, the mark, and what the vault serves. Prints whether
# its certificates are the `same` or `changed`, or `unrelated` if the job trusts no root of this vault. Fails if the vault
# served anything but complete PEM blocks of certificates.
next_ca() {
  bounded awk -v mark="$ca_mark" -v next_file="$scratch/ca.pem" '
    { sub(/\r$/, "") }
    kind == "served" && $0 == "-----BEGIN CERTIFICATE-----" { if (inside) wrong = 1; inside = 1; body = ""; next }
    kind == "served" && $0 == "-----END CERTIFICATE-----" {
      if (!inside || body == "" || ++count > 50) { wrong = 1; exit }
      inside = 0; served[body] = 1; ours = ours block(body)
      next
    }
    kind == "served" && inside && /^[A-Za-z0-9+\/]+=?=?$/ && length(body) < 20000 { body = body $0; next }
    kind == "served" && !inside && /^(#.*)?$/ { next }
    kind == "served" { wrong = 1; exit }
    $0 == mark { marked = 1 }
    /^-----BEGIN / { if (inside) wrong = 1; inside = 1; label = $0; body = ""; text = $0 "\n"; next }
    inside { text = text $0 "\n" }
    inside && /^-----END / {
      inside = 0
      if (label == "-----BEGIN CERTIFICATE-----" && body in served) { related = 1; kept[body] = 1 }
      else if (marked) { related = 1; gone = 1 }
      else theirs = theirs text
    }
    inside { body = body $0 }
    END {
      if (wrong || inside || !count) exit 1
      if (!related) { print "unrelated"; exit }
      for (one in served) if (!(one in kept)) gone = 1
      printf "%s%s\n%s", theirs, mark, ours >next_file
      if (close(next_file)) exit 1
      print (gone ? "changed" : "same")
    }
    function block(base64,   lines) {
      for (lines = ""; base64 != ""; base64 = substr(base64, 65)) lines = lines substr(base64, 1, 64) "\n"
      return "-----BEGIN CERTIFICATE-----\n" lines "-----END CERTIFICATE-----\n"
    }' kind=served "$scratch/ca.crt" kind=kept "$ca_path"
}

# ---------------------------------------------------------------------------------------------------------------------
# A run: check

# check_pem ARTIFACT FILE: requires complete PEM blocks of the right type and nothing else. Only chain.crt may be empty.
check_pem() {
  pem_keys=0 pem_least=1 pem_most=100
  case $1 in
    private.key | private-key.pem) pem_keys=1 pem_most=1 ;;
    combined.pem) pem_keys=1 pem_least=2 ;;
    chain.crt) pem_least=0 ;;
  esac
  bounded awk -v keys="$pem_keys" -v least="$pem_least" -v most="$pem_most" '
    { sub(/\r$/, ""); label = blocks < keys ? "PRIVATE KEY" : "CERTIFICATE" }
    $0 == "-----BEGIN " label "-----" { if (inside) wrong = 1; inside = 1; size = 0; next }
    $0 == "-----END " label "-----" { if (!inside || !size) wrong = 1; inside = 0; blocks++; next }
    inside && /^[A-Za-z0-9+\/]+=?=?$/ { size += length($0); next }
    !inside && /^$/ { next }
    { wrong = 1 }
    END { exit wrong || inside || blocks < least || blocks > most }
  ' "$2" || fail "$exit_check" "$1: the server sent an incomplete or invalid PEM file; nothing was changed"
}

# check_der ARTIFACT FILE: requires one DER sequence with nothing after it.
check_der() {
  od -A n -v -t u1 -N 5 "$2" | awk -v size="$(byte_count "$2")" '
    { for (i = 1; i <= NF; i++) byte[++count] = $i }
    END {
      long = byte[2] > 128 ? byte[2] - 128 : 0
      for (i = 1; i <= long; i++) rest = rest * 256 + byte[2 + i]
      exit byte[1] != 48 || long > 3 || size != 2 + long + (long ? rest : byte[2])
    }' || fail "$exit_check" "$1: the server sent an incomplete or invalid DER file; nothing was changed"
}

# Prints the path of the file that will be current after this run: the new one, or the one on disk.
effective() {
  if [ -f "$staging/$1" ]; then printf '%s\n' "$staging/$1"; else printf '%s\n' "$disk/$1"; fi
}

check_all() {
  installed_version=$(cut -f 1 "$run_state/state" 2>/dev/null | head -n 1)
  if [ "$has_openssl" = no ]; then
    [ "$fetched" = no ] || info "openssl is not installed; skipped the checks for expiry, for an older certificate and for a matching key"
    # Without openssl, compare version numbers.
    [ -z "$installed_version" ] || [ -z "$(first_leaf)" ] || [ ! -f "$disk/$(first_leaf)" ] ||
      [ "$pinned" -ge "$installed_version" ] || fail "$exit_check" "$(older_message)"
    return
  fi
  for line in $files; do
    if is_der "${line%% *}"; then check_converted "${line%% *}" "${line#* }"; fi
    is_leaf "${line%% *}" || continue
    leaf_path=$(effective "${line#* }")
    check_leaf "$leaf_path" "$disk/${line#* }"
    check_keys "$leaf_path"
  done
}

# check_converted ARTIFACT OUTPUT: checks the PEM form of a file that is not PEM.
check_converted() {
  leaf_path=$(effective "$2")
  to_pem "$1" "$leaf_path" "$scratch/new.pem" || case $1 in
    keystore.p12) fail "$exit_check" "openssl cannot open keystore.p12 with the password of this job; nothing was changed" ;;
    *) fail "$exit_check" "the server sent a certificate that openssl cannot parse" ;;
  esac
  if [ "$leaf_path" = "$disk/$2" ]; then
    check_leaf "$scratch/new.pem" "$scratch/new.pem"
  else
    # With another password, the file on disk does not open.
    { [ -f "$disk/$2" ] && to_pem "$1" "$disk/$2" "$scratch/old.pem"; } || rm -f "$scratch/old.pem"
    check_leaf "$scratch/new.pem" "$scratch/old.pem"
  fi
  check_keys "$scratch/new.pem"
  [ "$1" != keystore.p12 ] || [ "$(bounded openssl pkey -pubout -in "$scratch/new.pem" 2>/dev/null </dev/null)" = "$leaf_key" ] ||
    fail "$exit_check" "the private key in keystore.p12 does not match its certificate; nothing was changed"
  rm -f "$scratch/new.pem" "$scratch/old.pem"
}

# to_pem ARTIFACT FILE PEM: converts the leaf certificate, and in a keystore also the key. Fails if openssl cannot.
to_pem() {
  case $1 in
    certificate.der) bounded openssl x509 -inform DER -in "$2" -out "$3" ;;
    keystore.p12)
      bounded openssl pkcs12 -clcerts -nodes -passin "file:$job_directory/keystore-password" -in "$2" -out "$3" && [ -s "$3" ]
      ;;
  esac >/dev/null 2>&1 </dev/null
}

check_leaf() {
  bounded openssl x509 -noout -in "$1" >/dev/null 2>&1 </dev/null || fail "$exit_check" "the server sent a certificate that openssl cannot parse"
  bounded openssl x509 -noout -checkend 0 -in "$1" >/dev/null 2>&1 </dev/null ||
    fail "$exit_check" "the certificate in the vault has expired; nothing was changed"
  [ "$1" != "$2" ] || return 0
  leaf_begins=$(not_before "$1")
  [ "$allow_early" = yes ] || { [ -f "$2" ] && cmp -s "$1" "$2"; } || ! is_earlier "$(date -u '+%Y%m%d%H%M%S')" "$leaf_begins" ||
    fail "$exit_check" "the certificate in the vault is not valid before $(start_date "$1"), and this machine's clock says $(date -u); \
nothing was changed
Fix: set the clock, or use --allow-not-yet-valid once if it stays wrong"
  [ -f "$2" ] || return 0
  disk_begins=$(not_before "$2")
  # Replace an unreadable certificate on disk.
  [ -n "$disk_begins" ] || return 0
  ! is_earlier "$leaf_begins" "$disk_begins" || fail "$exit_check" "$(older_message)"
  # The versions of a certificate that was deleted and created again start at 1.
  [ -z "$installed_version" ] || [ "$pinned" -ge "$installed_version" ] || is_earlier "$disk_begins" "$leaf_begins" ||
    fail "$exit_check" "$(older_message)"
}

# Some shells cannot compare numbers with fourteen digits.
is_earlier() {
  awk 'BEGIN { exit !(ARGV[1] + 0 < ARGV[2] + 0) }' "$1" "$2"
}

older_message() {
  printf '%s\n' "the server sent a certificate that is older than the one in $destination; nothing was changed. To install it anyway, \
remove $destination/$(first_leaf) and run the job again"
}

start_date() {
  bounded openssl x509 -noout -startdate -in "$1" 2>/dev/null </dev/null | sed 's/^notBefore=//'
}

not_before() {
  start_date "$1" | sortable_date
}

not_after() {
  bounded openssl x509 -noout -enddate -in "$1" 2>/dev/null </dev/null | sed 's/^notAfter=//' | sortable_date
}

# Prints a date of openssl as a sortable number. Parsing dates with `date` is not portable.
sortable_date() {
  awk '
    { split($3, time, ":"); month = (index("JanFebMarAprMayJunJulAugSepOctNovDec", $1) + 2) / 3
      if (NF >= 4) printf "%04d%02d%02d%02d%02d%02d\n", $4, month, $2, time[1], time[2], time[3] }'
}

check_keys() {
  leaf_key=$(bounded openssl x509 -noout -pubkey -in "$1" 2>/dev/null </dev/null)
  for key_line in $files; do
    is_key "${key_line%% *}" || continue
    own_key=$(bounded openssl pkey -pubout -in "$(effective "${key_line#* }")" 2>/dev/null </dev/null)
    if [ -z "$own_key" ] || [ "$own_key" != "$leaf_key" ]; then
      fail "$exit_check" "${key_line%% *} does not match the certificate; nothing was changed"
    fi
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# A run: write

# Stages the new files inside the destination, which is always the same file system, even if the destination is a mount
# point or a link. Their names begin with a dot, because services that read whole directories skip such names. If the
# directory belongs to the owner, downloads and checks use root's own scratch directory (`staging`) and a copy of the
# files on disk (`disk`).
make_staging() {
  check_destination_place create || fail "$exit_write" "$walk_problem"
  stage_path=$destination/.vault-staging-$job_id
  previous=$run_state/previous
  if [ -z "$writer" ]; then disk=$destination; else disk=$scratch/disk; fi
  [ -z "$writer" ] || mkdir "$disk" || scratch_full
  read_disk || fail "$exit_write" "$walk_problem"
  remove_directory "$stage_path" || fail "$exit_write" "$walk_problem"
  # shellcheck disable=SC2016 # the inner shell expands these
  as_writer sh -c 'rm -f "$1"*' sh "$destination/.vault-copy-$job_id-" </dev/null
  recover
  { [ ! -e "$destination/.vault-previous-$job_id" ] && [ ! -h "$destination/.vault-previous-$job_id" ]; } ||
    warn "version 0.1.0 was interrupted and left $destination/.vault-previous-$job_id. It is not used, because other users may \
have written to it, and is removed once the current files are installed"
  as_writer mkdir "$stage_path" 2>/dev/null </dev/null || fail "$exit_write" "cannot write to $destination"
  staging=$stage_path
  [ -z "$writer" ] || { staging=$scratch/new && mkdir "$staging"; } || scratch_full
}

# Copies the files in the owner's directory that this user can read. Ignores links. On failure sets walk_problem.
read_disk() {
  [ -n "$writer" ] || return 0
  for line in $files; do
    output=${line#* }
    rm -f "$disk/$output"
    # shellcheck disable=SC2016 # the inner shell expands these
    as_writer sh -c '
      if [ -h "$1" ] || [ ! -e "$1" ]; then exit 3; fi
      [ -f "$1" ] || exit 4
      exec cat <"$1"' sh "$destination/$output" >"$scratch/read" 2>/dev/null </dev/null
    case $? in
      0) cp "$scratch/read" "$disk/$output" || scratch_full ;;
      3) ;;
      4)
        walk_problem="$destination/$output is not a file"
        return 1
        ;;
      *)
        walk_problem="$writer cannot read $destination/$output.
Fix: chown $writer '$destination/$output'"
        return 1
        ;;
    esac
  done
}

# remove_directory PATH: removes one of our own directories with its files. If another user created it, leaves it alone
# and sets walk_problem.
remove_directory() {
  stat_entry "$1"
  [ -n "$entry_kind" ] || return 0
  if [ "$my_uid" -eq 0 ] && [ -z "$writer" ]; then
    case $entry_uid-$entry_mode in
      0-d????-??-*) ;;
      *)
        walk_problem="$1 has a reserved name but is not a directory of root; inspect and remove it"
        return 1
        ;;
    esac
  fi
  as_writer rm -rf "$1" </dev/null && return 0
  walk_problem="cannot remove $1"
  return 1
}

remove_staging() {
  as_writer rm -rf "$stage_path" </dev/null
  # With a journal, the backups belong to an interrupted swap, and the next run needs them.
  [ -e "$run_state/swapping" ] || rm -rf "$previous"
}

# A run that ended between its first and last rename, for example by a power cut, left a journal (`swapping`), the list of
# the old files. Restore them, unless all new files are in place. If the journal is empty or truncated, no renames
# happened, and `state` lists the old files. A backup is used only if its checksum is in one of these lists.
recover() {
  [ -e "$run_state/swapping" ] || [ -e "$previous" ] || return 0
  if [ -e "$run_state/swapping" ] && ! disk_is "$run_state/pending"; then
    warn "an earlier run was interrupted while it replaced files; restoring the old files"
    cp "$run_state/swapping" "$scratch/swapping" || scratch_full
    if [ "$(tail -n 1 "$scratch/swapping")" != end ]; then
      [ ! -r "$run_state/state" ] || cut -f 3,5 "$run_state/state" >"$scratch/swapping" || scratch_full
    fi
    if ! roll_back; then
      warn "cannot restore all old files; the remaining backups are in $previous, and this run downloads the current files"
      read_disk || fail "$exit_write" "$walk_problem"
      return 0
    fi
    read_disk || fail "$exit_write" "$walk_problem"
  fi
  rm -f "$run_state/swapping"
  rm -rf "$previous"
}

is_own_file() {
  for own_line in $files; do
    [ "${own_line#* }" != "$1" ] || return 0
  done
  return 1
}

# Sets `changed` to the names of the files that differ. Only those are replaced.
find_changes() {
  changed=''
  for line in $files; do
    output=${line#* }
    if [ -f "$staging/$output" ]; then
      if [ ! -h "$disk/$output" ] && [ -f "$disk/$output" ] && cmp -s "$staging/$output" "$disk/$output"; then
        rm -f "$staging/$output"
      fi
    fi
    # Restores mode and owner of an unchanged file. A file with several hard links is replaced by a copy instead.
    if [ ! -f "$staging/$output" ]; then
      if [ -n "$writer" ] || [ -z "$(find "$disk/$output" -prune -links +1)" ]; then
        set_rights "${line%% *}" "$destination/$output"
        continue
      fi
      has_rights "${line%% *}" "$disk/$output" && continue
      cp "$disk/$output" "$staging/$output" || fail "$exit_write" "cannot write to $destination"
    fi
    [ -n "$writer" ] || set_rights "${line%% *}" "$staging/$output"
    changed=$changed${changed:+$newline}$output
  done
}

find_mode() {
  rights_mode=${mode:-$default_file_mode}
  if is_key "$1" || [ "$1" = keystore.p12 ]; then rights_mode=$private_key_mode; fi
}

has_rights() {
  find_mode "$1"
  [ -z "$(find "$2" -prune -type f ! -perm "$rights_mode")" ] &&
    { [ -z "$owner" ] || [ -z "$(find "$2" -prune ! -user "$owner" 2>&1)" ]; } &&
    { [ -z "$group" ] || [ -z "$(find "$2" -prune ! -group "$group" 2>&1)" ]; }
}

# Sets mode and owner before the swap, so that a file never exists with the wrong mode. Also fixes later changes.
set_rights() {
  find_mode "$1"
  if [ -n "$(find "$2" -prune -type f ! -perm "$rights_mode")" ]; then
    as_writer chmod "$rights_mode" "$2" 2>/dev/null </dev/null || without_modes || fail "$exit_write" "cannot set the mode of $2"
  fi
  if [ -n "$owner" ] && [ -z "$writer" ] && [ -n "$(find "$2" -prune ! -user "$owner" 2>&1)" ]; then
    chown "$owner" "$2" 2>/dev/null || fail "$exit_write" "cannot change the owner of $2 to $owner"
  fi
  if [ -n "$group" ] && [ -n "$(find "$2" -prune ! -group "$group" 2>&1)" ]; then
    as_writer chgrp "$group" "$2" 2>/dev/null </dev/null || fail "$exit_write" "cannot change the group of $2 to $group"
  fi
}

# Some file systems, such as Proxmox's pmxcfs, have fixed modes and reject chmod.
without_modes() {
  [ -z "$writer" ] && true >"$staging/.vault-probe" || return 1
  if chmod 0600 "$staging/.vault-probe" 2>/dev/null && chmod 0640 "$staging/.vault-probe" 2>/dev/null; then return 1; fi
  [ -n "$warned_modes" ] || info_quiet "the file system of $destination has fixed modes; --mode has no effect"
  warned_modes=yes
}

# Whether mv from the staging directory to the destination is a rename. On some file systems it is a copy.
renames_across() {
  [ -z "$writer" ] || return 0
  true >"$staging/.vault-probe" || return 1
  probe_before=$(inode "$staging/.vault-probe")
  mv -f "$staging/.vault-probe" "$destination/.vault-copy-$job_id-probe" 2>/dev/null || return 1
  probe_after=$(inode "$destination/.vault-copy-$job_id-probe")
  rm -f "$destination/.vault-copy-$job_id-probe"
  [ "$probe_before" = "$probe_after" ]
}

inode() {
  # shellcheck disable=SC2012 # find has no portable way to print it, and only the number is read
  ls -di "$1" | awk '{ print $1; exit }'
}

# Replaces all files or none. First copies the old files to the state directory. A single mv does all renames and outlives
# this script: if the script is killed, either the old or the new files are in place. The backups are on disk before the
# journal, and the journal before the first rename; the journal is removed once the renames are on disk.
swap() {
  # Remove backups that an earlier rollback could not use.
  [ ! -e "$previous" ] || rm -rf "$previous"
  mkdir "$previous" || fail "$exit_write" "cannot write to $run_state"
  true >"$scratch/swapping" || scratch_full
  set --
  for output in $changed; do
    keep_old "$output"
    cat <<EOF >>"$scratch/swapping" || scratch_full
$old_sum$tab$output
EOF
    [ -z "$writer" ] || stage_as_writer "$output"
    set -- "$@" "$stage_path/$output"
  done
  { echo end >>"$scratch/swapping" && [ "$(tail -n 1 "$scratch/swapping")" = end ]; } || scratch_full
  (set +f; to_disk "$previous" "$previous"/*) || fail "$exit_write" "cannot write to $run_state"
  as_writer_to_disk "$stage_path" "$@"
  replace_state "$scratch/next" "$run_state/pending"
  replace_state "$scratch/swapping" "$run_state/swapping"
  if renames_across; then
    as_writer mv -f "$@" "$destination/" 2>"$scratch/error" </dev/null
  else
    swap_by_copy 2>"$scratch/error"
  fi || {
    swap_error=$(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]')
    { read_disk && roll_back; } || fail "$exit_write" "cannot replace the files, and cannot restore the old ones, which are in $previous: $swap_error"
    rm -f "$run_state/pending"
    [ ! -e "$scratch/pending.before" ] || mv -f "$scratch/pending.before" "$run_state/pending"
    rm -f "$run_state/swapping"
    fail "$exit_write" "cannot replace the files in $destination; the old files are unchanged: $swap_error"
  }
  as_writer_to_disk "$destination"
  rm -f "$run_state/swapping"
  rm -rf "$previous"
  [ -z "$writer" ] || for output in $changed; do
    cp "$staging/$output" "$disk/$output" || scratch_full
  done
}

# keep_old OUTPUT: backs up a file and sets old_sum to its checksum, `link` for a link, or `-` if there was no file.
keep_old() {
  old_sum=-
  if [ -h "$disk/$1" ]; then
    cp -P "$disk/$1" "$previous/$1" || fail "$exit_write" "cannot back up $destination/$1"
    old_sum='link'
  elif [ -e "$disk/$1" ]; then
    [ -f "$disk/$1" ] || fail "$exit_write" "$destination/$1 is not a file"
    cp -p "$disk/$1" "$previous/$1" 2>/dev/null || cp "$disk/$1" "$previous/$1" ||
      fail "$exit_write" "cannot back up $destination/$1"
    old_sum=$(checksum "$previous/$1")
    [ "$old_sum" = "$(checksum "$disk/$1")" ] || fail "$exit_write" "cannot back up $destination/$1"
  fi
}

# The owner's process creates the file, and fails if it exists.
stage_as_writer() {
  # shellcheck disable=SC2016 # the inner shell expands these
  as_writer sh -c 'umask 077; set -C; cat >"$1"' sh "$stage_path/$1" <"$staging/$1" 2>/dev/null ||
    fail "$exit_write" "cannot write to $destination"
  for line in $files; do
    [ "${line#* }" != "$1" ] || set_rights "${line%% *}" "$stage_path/$1"
  done
}

# Runs in a subshell, which also outlives this script.
swap_by_copy() (
  trap - 0 HUP INT TERM
  copies=0
  for output in $changed; do
    copies=$((copies + 1))
    cp -p "$staging/$output" "$destination/.vault-copy-$job_id-$copies" ||
      cp "$staging/$output" "$destination/.vault-copy-$job_id-$copies" || exit 1
  done
  copies=0
  for output in $changed; do
    copies=$((copies + 1))
    mv -f "$destination/.vault-copy-$job_id-$copies" "$destination/$output" || exit 1
  done
)

# Restores every file in the list from its backup, or removes it if there was none. Ignores names that are not the job's.
roll_back() {
  back=0
  while IFS=$tab read -r old_sum output <&4; do
    is_own_file "$output" || continue
    case $old_sum in
      -) as_writer rm -f "$destination/$output" </dev/null || back=1 ;;
      link) { [ -h "$previous/$output" ] && cp -P "$previous/$output" "$destination/.vault-copy-$job_id-old" &&
        mv -f "$destination/.vault-copy-$job_id-old" "$destination/$output"; } || back=1 ;;
      *) restore_file "$output" || back=1 ;;
    esac
  done 4<"$scratch/swapping"
  return "$back"
}

restore_file() {
  [ -h "$disk/$1" ] || [ ! -f "$disk/$1" ] || [ "$(checksum "$disk/$1")" != "$old_sum" ] || return 0
  [ -f "$previous/$1" ] && [ ! -h "$previous/$1" ] && [ "$(checksum "$previous/$1")" = "$old_sum" ] || return 1
  back_copy=$destination/.vault-copy-$job_id-old
  if [ -n "$writer" ]; then
    for line in $files; do
      [ "${line#* }" != "$1" ] || find_mode "${line%% *}"
    done
    # shellcheck disable=SC2016 # the inner shell expands these
    as_writer sh -c 'umask 077; rm -f "$1"; set -C; cat >"$1" && chmod "$3" "$1" && mv -f "$1" "$2"' \
      sh "$back_copy" "$destination/$1" "$rights_mode" <"$previous/$1"
  else
    { cp -p "$previous/$1" "$back_copy" 2>/dev/null || cp "$previous/$1" "$back_copy"; } &&
      to_disk "$back_copy" && mv -f "$back_copy" "$destination/$1"
  fi
}

# Some versions of sync ignore their arguments and sync everything, which is slower but correct.
to_disk() {
  sync "$@" >/dev/null 2>&1 </dev/null || sync
}

as_writer_to_disk() {
  as_writer sync "$@" >/dev/null 2>&1 </dev/null || sync
}

# replace_state FROM TO: replaces a file atomically and durably.
replace_state() {
  { cp "$1" "$2.new" && cmp -s "$1" "$2.new" && to_disk "$2.new" && mv -f "$2.new" "$2" && to_disk "${2%/*}"; } ||
    fail "$exit_write" "cannot write to ${2%/*}"
}

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
      [ "$reload_status" -ne 124 ] ||
        fail "$exit_reload" "the reload command timed out after $reload_seconds seconds; the next run retries it"
      fail "$exit_reload" "the reload command failed with exit code $reload_status; the next run retries it"
    fi
  fi
  [ -z "$verify" ] || verify_served
}

# Retries, because services take a moment to load the new certificate.
verify_served() {
  own_fingerprint=$(fingerprint <"$disk/$(first_leaf)")
  verify_count=0
  while :; do
    served_certificate
    served_fingerprint=$(fingerprint <"$scratch/served")
    [ "$served_fingerprint" != "$own_fingerprint" ] || return 0
    verify_count=$((verify_count + 1))
    [ "$verify_count" -lt "$verify_tries" ] || break
    sleep 1
  done
  if [ -n "$served_fingerprint" ]; then
    fail "$exit_verify" "$verify does not serve the new certificate; the next run retries the reload and the check"
  fi
  fail "$exit_verify" "$verify is unreachable or does not speak TLS; the next run retries the reload and the check"
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
  scratch_name=scratch.$$.$(od -A n -N 4 -t x4 /dev/urandom 2>/dev/null | tr -d ' \n')
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
  for part in state pending swapping last-run; do
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
    outcome="version $pinned is installed in $destination"
    commit "$scratch/next"
    info "$outcome"
  else
    outcome="unchanged, version $pinned"
    commit "$scratch/next"
    info_quiet "$outcome"
  fi
  remove_local_keys
  [ -z "$late_failure" ] || fail "$exit_fetch" "$outcome, but its renewal with a new private key failed: $late_failure"
  record_run 0 "$outcome"
}

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
  make_first_scratch
  choose_tool
  check_options
  trust_sudo_user
  choose_scheduler
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
  read_api_key
  ca_path=$ca_file
  [ -z "$local_key" ] || check_sign_scope || fail "$exit_fetch" "no job was created: $http_failure"
  authorized=no
  # Everything that depends on the existing jobs happens under this lock.
  mkdir -p "$state_root" 2>/dev/null || fail "$exit_write" "cannot write to $state_root"
  acquire_lock "$state_root/install.lock" 300 || fail "$exit_busy" "another installation has held the lock for five minutes"
  # shellcheck disable=SC2031
  install_lock=$held_lock held_lock=''
  remove_dead_offers "$state_root/install.lock"
  finish_set_key
  find_job_id
  refuse_shared_files
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
  info "scheduled: $schedule ($scheduler)"
  exit "$first_run"
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
  schedule     ${schedule:-once a day at a random time} ($scheduler)
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
  reload       ${reload:-none}${local_key:+$newline  private key  generated on this machine ($local_key)}
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
  ! has_keystore || { [ -s "$job_directory/keystore-password" ] && [ -f "$job_directory/keystore-password" ]; } ||
    problem "$job_directory/keystore-password is missing or empty; create the job again"
  is_whole_script "$job_directory/install.sh" ||
    problem "$job_directory/install.sh is missing or damaged; create the job again"
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
      for id in $selected; do
        if ! is_whole_script "$jobs_root/$id/install.sh"; then
          message err "$jobs_root/$id/install.sh is missing or damaged; create the job again"
          worst=1
          continue
        fi
        /bin/sh "$jobs_root/$id/install.sh" --run "$id" </dev/null || worst=$?
      done
      ;;
    *) run_job "$selected" ;;
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
  rm -rf "${jobs_root:?}/$job_id" "${state_root:?}/$job_id" || fail "$exit_write" "cannot remove $jobs_root/$job_id"
  held_lock=''
  info "removed the job; the files in $destination stay"
}

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

# ---------------------------------------------------------------------------------------------------------------------
# The command line

# Options are `--name value` or `--name=value`.
read_options() {
  action=install wanted_job='' key_file='' keystore_file='' ca_file='' dry_run=no given_server='' local_key_type=''
  while [ $# -gt 0 ]; do
    option=${1%%=*}
    case $option in
      --list | --set-key | --help | --dry-run | --allow-http | --allow-not-yet-valid | --local-key)
        [ "$option" = "$1" ] || usage_error "$option takes no value"
        case $option in
          --list) action=list ;;
          --set-key) action=set-key ;;
          --help) action=help ;;
          --dry-run) dry_run=yes ;;
          --allow-http) allow_http=yes ;;
          --local-key) local_key=ec256 ;;
          --allow-not-yet-valid)
            # The job's own copy of the script may be older, and then ignores the variable.
            allow_early=yes
            export CERTIFICATE_VAULT_ALLOW_NOT_YET_VALID=yes
            ;;
        esac
        shift
        continue
        ;;
      --status | --run | --uninstall)
        action=${option#--}
        case $1 in *=*) wanted_job=${1#*=} ;; esac
        shift
        # A job id ends with a digit, and may begin with a dash, as certificate names may.
        case ${1:-} in -*[!0-9] | '') ;; *) wanted_job=$1 && shift ;; esac
        continue
        ;;
      --server | --certificate | --file | --destination | --reload-command | --schedule) ;;
      --listener-user | --key-file | --keystore-password-file | --ca-file | --pin | --owner | --group | --mode | --verify | --local-key-type) ;;
      *) usage_error "unknown option \"$1\"; see --help" ;;
    esac
    case $1 in
      *=*) value=${1#*=} ;;
      *)
        [ $# -ge 2 ] || usage_error "$option needs a value"
        value=$2
        shift
        ;;
    esac
    shift
    refuse_control "$option" "$value"
    case $option in
      --server) given_server=$value ;;
      --certificate) check_certificate "$value" ;;
      --file) add_file "$value" ;;
      --destination) check_destination "$value" ;;
      --reload-command) reload=$value ;;
      --schedule) schedule=$value ;;
      --key-file) key_file=$value ;;
      --keystore-password-file) keystore_file=$value ;;
      --ca-file) ca_file=$value ;;
      --pin) add_pins "$value" ;;
      --owner) owner=$value ;;
      --group) group=$value ;;
      --mode) mode=$value ;;
      --listener-user) listener_user=$value ;;
      --verify) verify=$value ;;
      --local-key-type) local_key_type=$value ;;
    esac
  done
  [ "$action" != install ] || [ -n "$given_server" ] || given_server=$default_server
  # Selecting a job sends nothing, so http is no risk.
  [ "$action" = install ] || allow_http=yes
  [ -z "$given_server" ] || check_server "$given_server"
}

main() {
  stdin_key='' last_argument=''
  for argument in "$@"; do
    case $last_argument=$argument in
      --key-file=- | *=--key-file=-) IFS= read -r stdin_key || : ;;
    esac
    last_argument=$argument
  done
  # If the script comes through a pipe, standard input is the script.
  exec </dev/null
  set -u
  initialize
  read_options "$@"
  if [ "$action" = help ]; then
    usage
    exit 0
  fi
  find_paths
  # The schedule runs the job's own copy, so the jobs directory is its parent.
  if [ "$action" = run ] && [ -n "$wanted_job" ] && [ -f "${0%/*}/job" ] && [ "${0%/*}" != "$0" ]; then
    jobs_root=$(cd "${0%/*}/.." && pwd)
  fi
  case $action in
    install) install_job ;;
    list) list_jobs ;;
    status) show_status ;;
    run) run_jobs ;;
    set-key) set_key ;;
    uninstall) uninstall_jobs ;;
  esac
  exit $?
}

main "$@"
