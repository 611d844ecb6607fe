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
  check_client_certificate
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

absolute_path() {
  case $1 in
    '' | /*) printf '%s\n' "$1" ;;
    *) printf '%s\n' "$(pwd)/$1" ;;
  esac
}

# The files of --client-cert and --client-key are read where they are, because they are renewed there.
check_client_certificate() {
  if [ -z "$client_cert$client_key" ]; then return 0; fi
  [ -n "$client_cert" ] || usage_error "--client-key needs --client-cert"
  [ -n "$client_key" ] || usage_error "--client-cert needs --client-key"
  [ "$server_scheme" = https ] || usage_error "--client-cert needs a --server that begins with https://"
  # curl expects a password after a colon.
  case $client_cert in *:*) usage_error "--client-cert: the path \"$client_cert\" must not contain a colon" ;; esac
  refuse_unfit_pem --client-cert "$client_cert" CERTIFICATE
  refuse_unfit_pem --client-key "$client_key" 'PRIVATE KEY'
}

# refuse_unfit_pem OPTION FILE LABEL
refuse_unfit_pem() {
  { [ -f "$2" ] && [ -r "$2" ]; } || fail 1 "$1: cannot read $2"
  grep -e "^-----BEGIN .*$3-----" "$2" >/dev/null 2>&1 || fail 1 "$1: $2 has no $3 in PEM format"
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

