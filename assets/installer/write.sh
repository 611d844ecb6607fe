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
  entry_inode=$(ls -di "$1") || return 1
  IFS=' '
  # shellcheck disable=SC2086 # columns, to be split
  set -- $entry_inode
  IFS=$newline
  echo "$1"
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
  # Without old files, the pattern would be the name of no file, and everything on this machine would be synced.
  (set +f; set -- "$previous"/*; [ -e "$1" ] || [ -h "$1" ] || set --; to_disk "$previous" "$@") ||
    fail "$exit_write" "cannot write to $run_state"
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

