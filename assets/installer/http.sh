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
# that is not empty (or another method and type: `upload_method`, `upload_type`); a HEAD if `head_only` is yes. Sets http_status
# (000 if there was no response), http_version, http_etag, http_length, http_location, http_retry_after, http_exit (the exit code
# of the program, `short`, `large`, or the listener_problem of is_listener_trusted) and http_error (the program's message). Does
# not follow redirects.
http_get() {
  http_url=$server$1
  { true >"$2" && true >"$scratch/answer" && true >"$scratch/head" && true >"$scratch/error"; } || scratch_full
  keystore_code=''
  # Percent-encoded, because the programs below treat quotes, backslashes and spaces differently.
  case $1 in
    */keystore.p12 | */keystore.p12'?'*)
      keystore_code=$(tr -d '\r\n' <"$job_directory/keystore-password" | od -A n -v -t x1 | tr -d ' \t\n' | percent_encode)
      ;;
  esac
  if ! is_listener_trusted; then
    http_status=000 http_exit=$listener_problem http_version='' http_etag='' http_length='' http_location='' http_retry_after='' http_error=''
    return 0
  fi
  get_"$tool" "$1" "$2" "${3:-}"
  http_exit=$?
  if is_too_large "$2"; then
    http_status=000 http_exit=large http_version='' http_etag='' http_length='' http_location='' http_retry_after=''
    http_error="the response is larger than 4 MiB, or its headers are larger than 64 KiB"
    return 0
  fi
  parse_head
  # The last lines of curl explain certificates in general; the first one has the error.
  http_error=''
  [ ! -s "$scratch/error" ] ||
    http_error=$(bounded awk '/^curl: \(/ { print; found = 1; exit } { last = $0 } END { if (!found) print last }' "$scratch/error" |
      tr -d '[:cntrl:]' | cut -c 1-600)
  case $tool-$http_exit in
    # The time limit of curl, or ours.
    curl-28 | *-124) http_status=000 ;;
  esac
  # A body that is shorter than Content-Length is an error.
  if is_success && [ "$head_only" = no ] && [ -n "$http_length" ] && [ "$body_size" != "$http_length" ]; then
    http_status=000 http_exit='short'
    http_error="the connection closed after $body_size of $http_length bytes"
  elif is_success && [ "$http_exit" -ne 0 ]; then
    http_status=000
  fi
}

# is_too_large BODY: whether the response reached a limit. Empties its files, which must not fill a disk until the run ends.
# Sets body_size.
is_too_large() {
  wc -c "$1" "$scratch/answer" "$scratch/head" "$scratch/error" >"$scratch/sizes" || scratch_full
  # Some versions of wc print blanks before the size.
  # shellcheck disable=SC2034 # the path is the rest of the line
  {
    IFS=' ' read -r body_size size_path && IFS=' ' read -r answer_size size_path &&
      IFS=' ' read -r head_size size_path && IFS=' ' read -r error_size size_path
  } <"$scratch/sizes" || scratch_full
  if [ "$body_size" -lt "$largest_response" ] && [ "$answer_size" -lt "$largest_response" ] &&
    [ "$head_size" -lt "$largest_head" ] && [ "$error_size" -lt "$largest_head" ]; then
    return 1
  fi
  true >"$1" && true >"$scratch/answer" && true >"$scratch/head" && true >"$scratch/error"
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
  set -- /proc/net/tcp
  [ ! -r /proc/net/tcp6 ] || set -- "$@" /proc/net/tcp6
  bounded awk -v host="$server_host" -v port="$server_port" '
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
    }' "$@" 2>/dev/null
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
  case $http_status in 200 | 201 | 202) return 0 ;; *) return 1 ;; esac
}

# Some versions of sed ignore a last line without a line break.
percent_encode() {
  { cat && echo; } | sed 's/../%&/g'
}

scratch_full() {
  fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
}

byte_count() {
  file_size=$(wc -c <"$1") && echo "${file_size##* }"
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
  [ "$head_only" = no ] || set -- "$@" --head
  [ -z "$upload" ] || set -- "$@" --request "$upload_method" --data-binary "@$upload" --header "Content-Type: $upload_type"
  [ "$ca" = no ] || set -- "$@" --cacert "$ca_path"
  [ -z "$client_cert" ] || set -- "$@" --cert "$client_cert" --key "$client_key"
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
  [ "$head_only" = no ] || set -- "$@" --spider
  # Only versions since 1.15 have other methods than POST.
  case ${upload:+$upload_method} in
    '') ;;
    POST) set -- "$@" --post-file="$upload" --header="Content-Type: $upload_type" ;;
    *) set -- "$@" --method="$upload_method" --body-file="$upload" --header="Content-Type: $upload_type" ;;
  esac
  [ "$ca" = no ] || set -- "$@" --ca-certificate="$ca_path"
  [ -z "$client_cert" ] || set -- "$@" --certificate="$client_cert" --private-key="$client_key"
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
  [ "$head_only" = no ] || request_method=HEAD
  [ -z "$upload" ] || request_method=$upload_method
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
Content-Type: $upload_type$cr
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
  [ -z "$client_cert" ] || set -- "$@" -cert "$client_cert" -key "$client_key"
  limited_download "$fetch_seconds" openssl s_client -quiet -verify 10 -verify_return_error "$@" \
    <"$scratch/request" >"$scratch/answer" 2>"$scratch/error"
  # The exit code also depends on how the server closed the connection, so the length of the body decides instead.
  [ "$?" -ne 124 ] || return 124
  split_answer "$openssl_body"
}

# The last headers in the file are those of the response; a proxy's may come first.
parse_head() {
  http_status=000 http_version='' http_etag='' http_length='' http_location='' http_retry_after=''
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
      pause = field["retry-after"]
      # The awk of BSD and macOS needs the parentheses.
      print (status == "" ? "000" : status)
      print (version ~ /^[1-9][0-9]*$/ && length(version) < 10 ? version : "")
      print (etag ~ /^(W\/)?"[!#-~]*"$/ && length(etag) < 200 ? etag : "")
      print (size ~ /^[0-9]+$/ ? size : "")
      print (pause ~ /^[0-9]+$/ && length(pause) < 7 ? pause + 0 : "")
      gsub(/[^!-~]/, "", field["location"])
      print substr(field["location"], 1, 200)
    }' "$scratch/head" >"$scratch/head.values" || scratch_full
  {
    IFS= read -r http_status && IFS= read -r http_version && IFS= read -r http_etag && IFS= read -r http_length &&
      IFS= read -r http_retry_after && IFS= read -r http_location
  } <"$scratch/head.values" || scratch_full
}

# get_with_retries PATH BODY [ETAG]: ends the run unless the status is 200 or 304.
get_with_retries() {
  try_get "$@" || fetch_failed "$http_failure"
}

# try_get PATH BODY [ETAG]: retries if that can help. Succeeds if the status is 200 or 304, 202 for an upload of PEM, or 200 or 201
# for one of JSON; otherwise sets http_failure to a message that says what failed and what to do.
try_get() {
  tries=0
  while :; do
    http_get "$@"
    tries=$((tries + 1))
    case $http_status${upload:+-${upload_type##*/}} in
      200 | 304 | 202-x-pem-file | 200-json | 201-json) return ;;
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

