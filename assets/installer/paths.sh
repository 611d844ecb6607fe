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
# missing directories one at a time; `check` stops at the first missing one. A directory that only root can change is read
# once, except as the last component: `walk_safe` has these, one per line.
walk() {
  walk_rest=$1/ walk_at='' walk_links=0 walk_problem='' walk_read=''
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
    # A path with a line break could be two lines of the list.
    if [ -n "$walk_rest" ] && [ -z "$writer" ] && [ "${walk_path%"$newline"*}" = "$walk_path" ]; then
      case $walk_safe in
        *"$newline$walk_path$newline"*)
          walk_at=$walk_path
          continue
          ;;
      esac
    fi
    walk_read=$walk_path
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
      d)
        walk_at=$walk_path
        [ -n "$writer" ] || [ "$entry_uid" != 0 ] || walk_safe=$walk_safe$walk_path$newline
        ;;
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
  [ "$walk_path" = "$walk_read" ] || stat_entry "$walk_path"
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

