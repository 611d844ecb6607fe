# ---------------------------------------------------------------------------------------------------------------------
# Enrollment
#
# With --enroll, a new job exchanges an enrollment token for an API key of its own, which is named after the host. Jobs of
# one machine share the key of one token. The vault takes one use of the token for each text that a client chooses. So this
# text is on disk before the request is sent, in the state directory (`enrollment.PREFIX`), and stays until a job has the key:
# a repeated command gets the same key with another secret. The public prefix of the token is in the job (`enrolled`).

# Sets enroll_token to the token in the file of --enroll, or in the environment, from which it is removed. Leaves it empty if
# there is none.
read_token() {
  enroll_token=''
  [ -n "$enroll_file${ENROLLMENT_TOKEN:-}" ] || return 0
  [ -z "$key_file${SERVICE_API_KEY:-}" ] || usage_error "an enrollment token is exchanged for an API key; leave out \
SERVICE_API_KEY and --key-file, or the token"
  case $enroll_file in
    '') enroll_token=$ENROLLMENT_TOKEN ;;
    -)
      enroll_token=$stdin_key
      [ -n "$enroll_token" ] || fail 1 "--enroll: standard input has no token"
      ;;
    ve_*.*)
      [ -e "$enroll_file" ] || usage_error "--enroll: other users of this machine can read a token that is an argument
Try: --enroll FILE, --enroll - for standard input, or the variable ENROLLMENT_TOKEN; and revoke this token if they may have read it"
      ;;
  esac
  if [ -z "$enroll_token" ]; then
    { [ -f "$enroll_file" ] && [ -r "$enroll_file" ]; } || fail 1 "--enroll: cannot read $enroll_file"
    IFS= read -r enroll_token <"$enroll_file" || [ -n "$enroll_token" ] || fail 1 "--enroll: $enroll_file is empty"
  fi
  unset ENROLLMENT_TOKEN
  enroll_token=${enroll_token%"$cr"}
  case $enroll_token in
    *[!A-Za-z0-9._-]*) ;;
    vk_*) usage_error "the enrollment token is an API key; use it with SERVICE_API_KEY or --key-file" ;;
    ve_?*.?*)
      enrolled=${enroll_token%%.*}
      [ "${#enrolled}" -gt 64 ] || return 0
      ;;
  esac
  usage_error "the enrollment token is invalid: a token begins with ve_ and has a dot"
}

# Sets api_key to that of the job, or of another job that was enrolled with this token, or else exchanges the token. The caller
# holds the lock of installations.
enroll() {
  for enrolled_job in "$job_id" $(wanted_job='' certificate='' destination='' matching_jobs); do
    enrolled_key=$jobs_root/$enrolled_job/api-key
    [ "$(job_value "$enrolled_job" enrolled)" = "$enrolled" ] || continue
    [ "$(job_value "$enrolled_job" server)" = "$server" ] || continue
    is_plain "$enrolled_key" || continue
    [ -s "$enrolled_key" ] || continue
    IFS= read -r api_key <"$enrolled_key" || fail 1 "cannot read $enrolled_key"
    info "this machine is enrolled; keeping the API key of job $enrolled_job"
    return 0
  done
  enroll_record=$state_root/enrollment.$enrolled
  is_plain "$enroll_record" || fail "$exit_write" "$enroll_record is not a file; remove it"
  enroll_request='' was_enrolling=yes
  [ ! -f "$enroll_record" ] || IFS= read -r enroll_request <"$enroll_record" || enroll_request=''
  case ${#enroll_request}-$enroll_request in
    32-*[!0-9a-f]*) make_enroll_request ;;
    32-*) ;;
    *) make_enroll_request ;;
  esac
  cat <<EOF >"$scratch/enroll.json" || scratch_full
{"host": "$(enroll_host)", "request": "$enroll_request"}
EOF
  upload=$scratch/enroll.json upload_type=application/json authorized=yes api_key=$enroll_token
  try_get /api/v1/enrollments/exchange "$scratch/enrolled"
  enroll_status=$?
  upload='' upload_type=application/x-pem-file authorized=no api_key='' enroll_token=''
  if [ "$enroll_status" -ne 0 ]; then
    # The first request was rejected, so the vault has created no key for it.
    case $tries-$was_enrolling-$http_status in 1-no-4*) rm -f "$enroll_record" ;; esac
    fail "$exit_fetch" "no job was created: $http_failure"
  fi
  api_key=$(json_values "$scratch/enrolled" key)
  enroll_name=$(json_values "$scratch/enrolled" name | tr -cd 'A-Za-z0-9._-' | cut -c 1-128)
  rm -f "$scratch/enrolled" "$scratch/enroll.json"
  case $api_key in
    '' | *[!A-Za-z0-9._-]*) fail "$exit_fetch" "no job was created: $http_url: not a response of the vault: no API key" ;;
  esac
  info "enrolled: the vault created the API key \"$enroll_name\" for this machine"
}

make_enroll_request() {
  was_enrolling=no
  enroll_request=$(od -A n -v -N 16 -t x1 /dev/urandom 2>/dev/null | tr -cd '0-9a-f')
  [ "${#enroll_request}" -eq 32 ] || fail 1 "cannot read random bytes from /dev/urandom"
  {
    cat <<EOF >"$enroll_record.new" && [ "$(cat "$enroll_record.new")" = "$enroll_request" ] &&
$enroll_request
EOF
      to_disk "$enroll_record.new" && mv -f "$enroll_record.new" "$enroll_record" && to_disk "$state_root"
  } 2>/dev/null || fail "$exit_write" "cannot write to $state_root"
}

# Prints the name of this host as the vault accepts it.
enroll_host() {
  enroll_name=$(uname -n | tr -c 'A-Za-z0-9._\n-' '-' | sed 's/^[.-]*//' | cut -c 1-100)
  printf '%s\n' "${enroll_name:-host}"
}

# The key is in a job, and with it what a repeated command needs.
forget_enroll_request() {
  [ -z "$enrolled" ] || rm -f "$state_root/enrollment.$enrolled"
}

# explain_enrollment PATH: sets http_error and http_hint if the exchange of a token failed. Fails for other requests.
explain_enrollment() {
  [ "$1" = /api/v1/enrollments/exchange ] || return 1
  http_hint="Fix: on the vault, create another token: vault enrollment create"
  case $http_status in
    401) http_error="401: the enrollment token is unknown" ;;
    403)
      http_error="403: the vault rejected the enrollment token$http_detail"
      http_hint=''
      ;;
    404)
      http_error="404: this vault has no enrollments"
      http_hint="Try: upgrade the vault, or use an API key"
      ;;
    409)
      http_error="409: the vault rejected the enrollment token$http_detail"
      # The vault says it, too.
      case $http_detail in *'vault enrollment create'*) http_hint='' ;; esac
      ;;
    *) return 1 ;;
  esac
}
