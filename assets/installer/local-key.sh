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

