# ---------------------------------------------------------------------------------------------------------------------
# HTTP: why a request failed, and what to do

# explain_status PATH BODY: sets http_error and http_hint for a response that is not a success.
explain_status() {
  http_detail=$(problem_detail "$2")
  ! explain_enrollment "$1" || return 0
  ! explain_local_key "$1" "$2" || return 0
  case $http_status in
    401)
      http_error="401: the API key is unknown, revoked or expired"
      case $action-$enrolled in
        set-key-*) ;;
        *-) http_hint="Fix: create the job again with a new key, or replace the key of all jobs with --set-key" ;;
        # A job that has the key of this token keeps it.
        *) http_hint="Fix: on the vault, create another enrollment token, and create the job again with it: vault enrollment create" ;;
      esac
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

