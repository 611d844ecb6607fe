# ---------------------------------------------------------------------------------------------------------------------
# A run: the signing request

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
  case $1 in
    *[\$\#\"\`\']*) ;;
    *)
      cat <<EOF
$1
EOF
      return
      ;;
  esac
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

