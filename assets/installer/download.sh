# ---------------------------------------------------------------------------------------------------------------------
# A run: download

# Each installed file has a line in `state` (or in `pending` until the reload succeeds) with version, ETag, checksum,
# artifact and output name, separated by tabs.

checksum() {
  sum_line=$(cksum <"$1") && echo "${sum_line%% *}:${sum_line#* }"
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

