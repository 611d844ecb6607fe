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
# would keep our output open after we exit. It ends within `clock_step` seconds after the limited process.
wait_limited() {
  timed_out=no
  # shellcheck disable=SC2016 # the inner shell expands these
  sh -c '
    seconds=0
    while kill -0 "$1"; do
      if [ "$seconds" -ge "$2" ]; then kill -s USR1 "$3"; sleep 1; fi
      sleep "$4"
      seconds=$((seconds + $4))
    done' clock "$limited" "$1" $$ "$clock_step" </dev/null >/dev/null 2>&1 &
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
# `openssl x509` parses the root certificates of the system first, which costs ten times as much as the rest, unless the
# variable names a file without any.
bounded() (
  SSL_CERT_FILE=/dev/null
  export SSL_CERT_FILE
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
    process_line=''
    { IFS= read -r process_line <"/proc/$1/stat"; } 2>/dev/null || return 0
    # The program's name is in parentheses and may contain spaces.
    IFS=' '
    # shellcheck disable=SC2086 # columns, to be split
    set -- ${process_line##*') '}
    IFS=$newline
    echo "${20-}"
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
    [ -e "$offer" ] || continue
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

