#!/bin/sh
# shellcheck disable=SC2317 # shellcheck does not see what traps and list_"$kind" call
# Certificate Vault: trust. It adds the roots of a private CA of the vault to the trust stores of this machine, replaces them
# after a rotation, and removes them. For usage, run `sh install-ca.sh --help`.
#
# It runs as root on other people's machines, and a root certificate can impersonate any server to them. Therefore nothing
# runs before the last line is read, nothing is added that was not authenticated, and only files that no other user can
# redirect are written. Every entry is named after the vault, its CA and the certificate's fingerprint, so it needs no memory
# of its own: what has the name of this CA is ours to remove, and nothing else. Plain POSIX: no `local`, no arrays, no GNU-only flags.
# IFS is a line break everywhere.

# The vault inserts its own address here when it serves this script.
default_server=''

# Exit codes, besides 0 for success, 1 for failure and 2 for wrong usage. They are those of install.sh.
exit_fetch=10
exit_check=11
exit_write=12
exit_busy=75

usage() {
  cat <<'EOF'
Add the roots of a private CA of the vault to the trust stores of this machine: the system's, Java's, and those of browsers
(NSS). Run it again after the CA was rotated.

  sh install-ca.sh [--server URL] [--pin sha256//BASE64 | --ca-file FILE | --fingerprint SHA256]
    --server URL             address of the vault; default: where this script was downloaded
    --pin sha256//BASE64     public key of the vault's own certificate; without --ca-file, the only thing trusted for the
                             download. Repeatable.
    --ca-file FILE           root certificate that signed the vault's own certificate
    --ca NAME                add the roots of this private CA of the vault; default: local-ca
    --fingerprint SHA256     add only a root with this SHA-256 fingerprint, however it was downloaded. Repeatable.
    --no-system              leave the system's trust store alone; needs no root rights
    --no-java                leave Java's trust stores alone
    --no-nss                 leave NSS databases (Firefox, Chromium) alone
    --java-store FILE        change this trust store instead of searching for those of Java. Repeatable.
    --root DIR               change the system in DIR, such as a mounted image, instead of this one: its system trust
                             store only, with its own programs, through chroot
    --dry-run                print what would happen, without doing it
    --uninstall              remove what this script added for this vault's CA
    --help                   show this help
Exit codes: 0 success, 1 failure, 2 wrong usage, 10 download, 11 check, 12 write, 75 another run in progress.
EOF
}

# ---------------------------------------------------------------------------------------------------------------------
# Messages and exit

info() { message info "$1"; }
warn() { message warning "$1"; }

# message PRIORITY TEXT: to stderr and syslog.
message() {
  cat <<EOF >&2
certificate-vault: $2
EOF
  command -v logger >/dev/null 2>&1 || return 0
  logger -t certificate-vault -p "daemon.$1" "$2" >/dev/null 2>&1 </dev/null || :
}

# fail CODE MESSAGE
fail() {
  message err "$2"
  exit "$1"
}

usage_error() { fail 2 "$1"; }

# store_failed MESSAGE: one of Java's or NSS's stores could not be changed. The others still are.
store_failed() {
  message err "$1"
  worst=$exit_write
}

cleanup() {
  exit_code=$?
  trap '' HUP INT TERM
  [ "$undo" = no ] || undo_system
  [ -z "$java_copy" ] || rm -f "$java_copy"
  [ -z "$scratch" ] || rm -rf "$scratch"
  exit "$exit_code"
}

initialize() {
  umask 077
  set -f
  # Cron has a short PATH and BSDs install programs in /usr/local. The caller's PATH comes first.
  PATH=${PATH:+$PATH:}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  LC_ALL=C
  export PATH LC_ALL
  # Otherwise GNU ls quotes the names that this script reads.
  unset QUOTING_STYLE
  tab=$(printf '\t')
  newline='
'
  IFS=$newline
  undo=no java_copy='' scratch='' problem='' worst=0 changed=no my_uid=$(id -u)
  trap cleanup 0
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# Creates a directory for temporary files. Root uses TMPDIR only if no other user can redirect it.
make_scratch() {
  scratch_in=${TMPDIR:-/tmp}
  [ "$scratch_in" = /tmp ] || is_safe "$(real_path "$scratch_in")/scratch" || scratch_in=/tmp
  scratch_path=$scratch_in/certificate-vault-trust.$$.$(od -A n -N 4 -t x4 /dev/urandom 2>/dev/null | tr -d ' \n')
  mkdir "$scratch_path" 2>/dev/null || fail "$exit_write" "cannot write to $scratch_in; is that disk full?"
  scratch=$scratch_path
  for empty in wanted have actions; do
    true >"$scratch/$empty" || fail "$exit_write" "cannot write to $scratch_in; is that disk full?"
  done
}

# ---------------------------------------------------------------------------------------------------------------------
# Paths

# Prints the path without links.
real_path() {
  real=$1 real_links=0
  while [ -h "$real" ] && [ "$real_links" -lt 40 ]; do
    real_links=$((real_links + 1))
    real_target=$(readlink "$real")
    case $real_target in
      /*) real=$real_target ;;
      *) real=${real%/*}/$real_target ;;
    esac
  done
  if [ -d "$real" ]; then
    (CDPATH='' cd -P "$real" 2>/dev/null && pwd -P)
  else
    real_parent=$(CDPATH='' cd -P "${real%/*}/" 2>/dev/null && pwd -P) && printf '%s\n' "${real_parent%/}/${real##*/}"
  fi
}

# is_safe PATH: true if no other user can change what is at this path, which has no links: root owns each directory on it
# and no other user can write to them, apart from sticky directories such as /tmp. The last component may be missing. For
# other users than root there is nothing to protect.
is_safe() {
  [ "$my_uid" -eq 0 ] || return 0
  safe_at='' safe_rest=${1#/}/
  is_safe_entry / || return 1
  while [ -n "$safe_rest" ]; do
    safe_at=$safe_at/${safe_rest%%/*} safe_rest=${safe_rest#*/}
    [ -e "$safe_at" ] || [ -h "$safe_at" ] || return 0
    is_safe_entry "$safe_at" || return 1
  done
}

# In a sticky directory, others could plant the name of a new file. This matters to root only.
is_sticky() {
  [ "$my_uid" -eq 0 ] && [ -k "$1" ]
}

is_safe_entry() {
  # shellcheck disable=SC2012 # find has no portable way to print the mode
  safe_entry=$(ls -ldn "$1" 2>/dev/null | awk 'NR == 1 { print $1 " " $3 }')
  case $safe_entry in
    l*) return 1 ;;
    d????????[tT]*' 0') return 0 ;;
    ?????w* | ????????w*) return 1 ;;
    *' 0') return 0 ;;
    *) return 1 ;;
  esac
}

# ---------------------------------------------------------------------------------------------------------------------
# Options

# Sets server, server_scheme, server_host (without brackets), url, ca_shown, and `ours`, with which the names of the entries of
# this vault's CA begin.
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
  server_authority=${server#*://} server_path=''
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
  case $server_host in
    '' | *[!A-Za-z0-9.:-]*) usage_error "--server: \"$1\" has no valid host" ;;
  esac
  ours=$(printf '%s' "$server_host-$server_port$server_path" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9.-' '-')
  url=$server/client/ca.crt ca_shown='the private CA'
  if [ -n "$ca" ]; then
    url=$server/client/cas/$ca/ca.crt ca_shown="the private CA $ca"
    # An underscore is in no address, so that no two CAs share names. Stores like Java's ignore case.
    case $ca in
      *[A-Z_]*) ours=${ours}_$(printf '%s' "$ca" | tr 'A-Z_' 'a-z-')_$(printf '%s' "$ca" | cksum | cut -d ' ' -f 1) ;;
      *) ours=${ours}_$ca ;;
    esac
  fi
  # A file name has at most 255 characters.
  [ "${#ours}" -le 100 ] || ours=$(printf '%.80s' "$ours")-$(printf '%s' "$ours" | cksum | cut -d ' ' -f 1)
  ours=certificate-vault-$ours-
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

# Adds pins, separated by commas or semicolons, to `pin`, where semicolons separate them, as curl and GNU wget expect.
add_pins() {
  # shellcheck disable=SC2020 # both become line breaks
  for one_pin in $(printf '%s\n' "$1" | tr ',;' '\n\n'); do
    case $one_pin in
      sha256//*[!A-Za-z0-9+/=]*) one_pin_length=0 ;;
      sha256//*=) one_pin_length=${#one_pin} ;;
      *) one_pin_length=0 ;;
    esac
    [ "$one_pin_length" -eq 52 ] || usage_error "--pin: \"$one_pin\" must be sha256// followed by 44 characters of base64"
    pin=$pin${pin:+;}$one_pin
  done
  [ -n "$pin" ] || usage_error "--pin is empty"
}

add_fingerprint() {
  one_fingerprint=$(printf '%s' "$1" | tr -d ': ' | tr 'A-F' 'a-f')
  case $one_fingerprint in
    *[!0-9a-f]*) one_fingerprint='' ;;
  esac
  [ "${#one_fingerprint}" -eq 64 ] || usage_error "--fingerprint: \"$1\" is not a SHA-256 fingerprint, 64 hexadecimal digits"
  fingerprints=$fingerprints${fingerprints:+$newline}$one_fingerprint
}

# Options are `--name value` or `--name=value`.
read_options() {
  action=install server=$default_server pin='' ca_file='' ca='' fingerprints='' java_given='' root='' dry_run=no
  with_system=yes with_java=yes with_nss=yes
  while [ $# -gt 0 ]; do
    option=${1%%=*}
    case $option in
      --no-system | --no-java | --no-nss | --dry-run | --uninstall | --help)
        [ "$option" = "$1" ] || usage_error "$option takes no value"
        case $option in
          --no-system) with_system=no ;;
          --no-java) with_java=no ;;
          --no-nss) with_nss=no ;;
          --dry-run) dry_run=yes ;;
          --uninstall) action=uninstall ;;
          --help) action=help ;;
        esac
        shift
        continue
        ;;
      --server | --pin | --ca-file | --ca | --fingerprint | --java-store | --root) ;;
      *) usage_error "unknown option \"$1\"; see --help" ;;
    esac
    case $1 in
      *=*) value=${1#*=} ;;
      *)
        [ $# -ge 2 ] || usage_error "$option needs a value"
        value=$2
        shift
        ;;
    esac
    shift
    case $value in
      '') usage_error "$option must not be empty" ;;
      *[[:cntrl:]]*) usage_error "$option must not contain line breaks or control characters" ;;
    esac
    case $option in
      --server) server=$value ;;
      --pin) add_pins "$value" ;;
      --ca-file) ca_file=$value ;;
      --ca) ca=$value ;;
      --fingerprint) add_fingerprint "$value" ;;
      --java-store) java_given=$java_given${java_given:+$newline}$value ;;
      --root) root=$value ;;
    esac
  done
}

check_options() {
  [ -n "$server" ] || usage_error "--server is missing"
  case $ca in
    local-ca) ca='' ;; # the CA that every vault has, at a shorter address
    [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) usage_error "--ca: \"$ca\" is not the name of a private CA of the vault" ;;
  esac
  [ "${#ca}" -le 64 ] || usage_error "--ca: a name has at most 64 characters"
  check_server "$server"
  [ -z "$ca_file" ] || [ -r "$ca_file" ] || fail 1 "--ca-file: cannot read $ca_file"
  [ "$action" = uninstall ] || [ "$server_scheme" = https ] || is_loopback "$server_host" || [ -n "$fingerprints" ] ||
    usage_error "over plain http, anyone on the network to $server_host could choose the root that this machine trusts.
Try: https, or --fingerprint with the SHA-256 fingerprint of the root"
  if [ -n "$root" ]; then
    [ "$with_system" = yes ] || usage_error "--root changes only the system's trust store; leave out --no-system"
    [ -z "$java_given" ] || usage_error "--root changes only the system's trust store; leave out --java-store"
    root=$(CDPATH='' cd -P "$root/" 2>/dev/null && pwd -P) || usage_error "--root: no such directory"
    root=${root%/} with_java=no with_nss=no
  fi
  [ "$with_system$with_java$with_nss" != nonono ] || usage_error "nothing is left to change"
}

# ---------------------------------------------------------------------------------------------------------------------
# Download

# Downloads the file with the roots. There is no key to protect, but only the vault may choose the roots: the server is verified by
# its certificate, its pin or, at last, by the fingerprint of what it sends. Redirects are not followed.
download() {
  if curl --version >/dev/null 2>&1 </dev/null; then
    tool=curl
    set -- --silent --show-error --fail --output "$scratch/ca.crt" --proto "=$server_scheme" --connect-timeout 10 \
      --max-time 60 --max-filesize 1000000 --retry 2 --write-out '%{http_code}'
    [ -z "$ca_file" ] || set -- "$@" --cacert "$ca_file"
    [ -z "$pin" ] || set -- "$@" --pinnedpubkey "$pin"
    ! is_insecure || set -- "$@" --insecure
    ! is_loopback "$server_host" || set -- "$@" --noproxy '*'
    # -q must come first: a .curlrc could disable checks. --globoff: IPv6 addresses have brackets.
    set -- curl -q --globoff "$@" "$url"
  elif wget --version 2>/dev/null </dev/null | grep '^GNU Wget 1' >/dev/null; then
    tool=wget
    set -- --no-verbose --output-document="$scratch/ca.crt" --max-redirect=0 --tries=2 --no-netrc --no-hsts --no-cookies \
      --timeout=10 --read-timeout=60
    [ -z "$ca_file" ] || set -- "$@" --ca-certificate="$ca_file"
    [ -z "$pin" ] || set -- "$@" --pinnedpubkey="$pin"
    ! is_insecure || set -- "$@" --no-check-certificate
    ! is_loopback "$server_host" || set -- "$@" --no-proxy
    set -- wget --no-config "$@" "$url"
  else
    fail 1 "install curl or GNU wget; other programs do not verify the server reliably"
  fi
  # Limits the file to a megabyte or two, as --max-filesize does only if the server announces the size.
  (ulimit -f 2048 2>/dev/null; exec "$@") >"$scratch/status" 2>"$scratch/error" </dev/null
  download_exit=$?
  # A redirect is no error to curl, and has no certificate.
  if [ "$download_exit" -eq 0 ] && { [ "$tool" = wget ] || [ "$(cat "$scratch/status")" = 200 ]; }; then return 0; fi
  explain_download
  fail "$exit_fetch" "cannot download $url: $why${hint:+$newline$hint}"
}

# True if the certificate of the server need not be signed by a known CA, because a pin or a fingerprint is checked.
is_insecure() {
  [ -z "$ca_file" ] && [ -n "$pin$fingerprints" ]
}

# Sets `why` and `hint` from the program's exit code and message.
explain_download() {
  why=$(awk '/^curl: \(/ { print; found = 1; exit } { last = $0 } END { if (!found) print last }' "$scratch/error" |
    tr -d '[:cntrl:]' | cut -c 1-300)
  hint=''
  case $tool-$download_exit-$why in
    curl-0-*) why="unexpected status $(tr -dc '0-9' <"$scratch/status"); redirects are not followed" ;;
    curl-6-* | *'unable to resolve'*)
      why="cannot resolve the host name $server_host"
      hint="Try: --server with another address, or fix the name in DNS"
      ;;
    curl-7-*) hint="Try: start the vault, or --server with the right address and port" ;;
    curl-28-*) hint="Try: check the address, and whether a firewall drops the connection" ;;
    curl-90-* | *[Pp]inned*)
      why="the public key of the server does not match --pin"
      hint="Try: --pin with the current key; on the vault, \"vault certificate show --name NAME\" prints it"
      ;;
    curl-60-* | wget-5-*)
      if [ -n "$ca_file" ]; then
        hint="Try: --ca-file with the root certificate that signed the vault's certificate"
      else
        hint="Try: --pin; on the vault, \"vault certificate show --name NAME\" prints it. Or --fingerprint, or --ca-file"
      fi
      ;;
    curl-22-*404* | wget-8-*404*)
      [ -z "$ca" ] || hint="Try: --ca with the name of a private CA of this vault; there, \"vault issuer list\" shows them"
      ;;
    curl-63-* | *-153-* | *-25-*) why="the response has more than a megabyte" ;;
  esac
  why=${why:-the download failed with exit code $download_exit}
}

# ---------------------------------------------------------------------------------------------------------------------
# Check

# Reads the downloaded file without openssl, which is not everywhere. Prints a line per certificate, with tabs: what it is
# (root, other, leaf, broken), the end of its validity as a sortable number, its base64 on one line, its name, and its
# bytes as arguments for printf '%b'. Fails if the file is not complete PEM blocks of certificates and nothing else.
read_certificates() {
  awk '
    # Sets tag, from and end of the DER element at this offset.
    function element(at,   n) {
      tag = byte[at]; end = byte[at + 1]; from = at + 2
      if (end > 131 || end == 128) broken = 1
      if (end > 128) { n = end - 128; end = 0; while (n-- > 0) end = end * 256 + byte[from++] }
      end += from
      if (broken || end > size) { broken = 1; end = size; if (from > size) from = size }
    }
    function expect(at, wanted) { element(at); if (tag != wanted) broken = 1 }
    function slice(first, last,   text) { for (text = ""; first < last; first++) text = text " " byte[first]; return text }
    function characters(first, last, pattern,   text, one) {
      for (text = ""; first < last && length(text) < 200; first++) {
        one = byte[first] < 32 || byte[first] > 126 ? "?" : sprintf("%c", byte[first])
        text = text (one ~ pattern ? one : "?")
      }
      return text
    }
    # The common name, or else the last value, of the name in these bytes.
    function readable(at, last,   after, oid, text, common) {
      while (at < last && !broken) {
        element(at); after = end
        element(from); element(from); oid = slice(from, end)
        element(end)
        text = characters(from, end, "[ -~]")
        if (oid == " 85 4 3") common = text
        at = after
      }
      text = common != "" ? common : text
      return text == "" ? "without a name" : text
    }
    function extension(at,   oid) {
      expect(at, 48); expect(from, 6)
      oid = slice(from, end)
      element(end); if (tag == 1) element(end)
      if (tag != 4) { broken = 1; return }
      if (oid == " 85 29 19") {
        expect(from, 48)
        if (end > from) { element(from); if (tag == 1 && byte[from] != 0) authority = 1 }
      }
      if (oid == " 85 29 15") { expect(from, 3); if (int(byte[from + 1] / 4) % 2 == 0) signs = 0 }
    }
    function certificate(   at, last, next_at, list_end, issuer, subject, name, expiry) {
      broken = 0; authority = 0; signs = 1; expiry = ""
      expect(0, 48); if (end != size) broken = 1
      expect(from, 48); at = from; last = end
      element(at); if (tag == 160) { at = end; element(at) }
      if (tag != 2) broken = 1
      expect(end, 48)
      expect(end, 48); issuer = slice(from, end)
      expect(end, 48); at = end
      element(from); element(end)
      expiry = characters(from, end, "[0-9Z]"); sub(/Z$/, "", expiry)
      if (tag == 23) expiry = (substr(expiry, 1, 2) + 0 < 50 ? "20" : "19") expiry
      if (expiry !~ /^[0-9]+$/ || length(expiry) != 14) broken = 1
      expect(at, 48); subject = slice(from, end); name = readable(from, end)
      expect(at, 48)
      expect(end, 48)
      for (at = end; at < last && !broken; at = next_at) {
        element(at); next_at = end
        if (tag != 163) continue
        expect(from, 48); list_end = end
        for (at = from; at < list_end && !broken; at = end_of(at)) extension(at)
      }
      kind = broken ? "broken" : !authority || !signs ? "leaf" : issuer == subject ? "root" : "other"
      printf "%s\t%s\t%s\t%s\t", kind, broken ? 0 : expiry, base64, broken ? "?" : name
      for (at = 0; at < size; at++) printf "\\0%03o", byte[at]
      printf "\n"
    }
    function end_of(at) { element(at); return end }
    # Some versions of BusyBox awk cannot exponentiate.
    BEGIN { power[0] = 1; power[2] = 4; power[4] = 16; power[6] = 64 }
    function decode(   at, held, bits, value) {
      size = 0; held = 0; bits = 0
      for (at = 1; at <= length(base64); at++) {
        value = index("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", substr(base64, at, 1)) - 1
        if (value < 0) break
        held = held * 64 + value; bits += 6
        if (bits >= 8) {
          bits -= 8
          byte[size++] = int(held / power[bits])
          held %= power[bits]
        }
      }
    }
    { sub(/\r$/, "") }
    $0 == "-----BEGIN CERTIFICATE-----" { if (inside) wrong = 1; inside = 1; base64 = ""; next }
    $0 == "-----END CERTIFICATE-----" {
      if (!inside || base64 == "") wrong = 1
      inside = 0
      if (++blocks > 20 || wrong) { wrong = 1; exit }
      decode(); certificate()
      next
    }
    inside && /^[A-Za-z0-9+\/]+=?=?$/ && length(base64) < 20000 { base64 = base64 $0; next }
    !inside && /^(#.*)?$/ { next }
    { wrong = 1; exit }
    END { exit wrong || inside || !blocks }
  ' "$scratch/ca.crt" >"$scratch/certificates"
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256
  elif command -v sha256 >/dev/null 2>&1; then
    sha256 -q
  else
    openssl dgst -sha256 -r
  fi | cut -c 1-64
}

# Checks the download. Writes the certificate of each root to NAME.crt in the scratch directory, and to `wanted` a line
# with its base64 and its name.
find_roots() {
  read_certificates || fail "$exit_check" "$url is not a complete list of certificates in PEM format; nothing was changed\
$(! grep -i '<html' "$scratch/ca.crt" >/dev/null 2>&1 || printf '%s' "$newline"'The response is a web page. Try: --server with the address of the vault')"
  now=$(date -u '+%Y%m%d%H%M%S')
  known=0
  while IFS=$tab read -r what expiry body name bytes <&4; do
    case $what in
      broken) fail "$exit_check" "$url contains a certificate that cannot be parsed; nothing was changed" ;;
      leaf) fail "$exit_check" "$url contains \"$name\", which is not the certificate of a CA; nothing was changed" ;;
    esac
    fingerprint=$(printf '%b' "$bytes" | sha256)
    case $fingerprint in
      '' | *[!0-9a-f]*) fail 1 "cannot calculate SHA-256 fingerprints; install sha256sum, shasum or openssl" ;;
    esac
    shown=$(printf '%s\n' "$fingerprint" | tr 'a-f' 'A-F' | sed -e 's/../&:/g' -e 's/:$//')
    # An intermediate or cross-signed certificate needs no trust of its own.
    [ "$what" = root ] || continue
    date=$(printf '%s\n' "$expiry" | sed 's/^\(....\)\(..\)\(..\).*/\1-\2-\3/')
    if is_earlier "$expiry" "$now"; then
      warn "skipped the root \"$name\": it expired on $date, and this machine's clock says $(date -u)"
      continue
    fi
    case $newline$fingerprints$newline in
      "$newline$newline" | *"$newline$fingerprint$newline"*) ;;
      *)
        warn "skipped the root \"$name\": its SHA-256 fingerprint is not in --fingerprint
  $shown"
        continue
        ;;
    esac
    known=$((known + 1))
    entry=$ours$(printf '%.16s' "$fingerprint")
    {
      printf '%s\t%s\n' "$body" "$entry" >>"$scratch/wanted" &&
        {
          printf '%s\n' '-----BEGIN CERTIFICATE-----' && printf '%s\n' "$body" | fold -w 64 &&
            printf '%s\n' '-----END CERTIFICATE-----'
        } >"$scratch/$entry.crt"
    } 2>/dev/null || fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
    info "root certificate \"$name\", valid until $date; SHA-256 fingerprint:
  $shown"
  done 4<"$scratch/certificates"
  [ "$known" -gt 0 ] || fail "$exit_check" "$url has no root certificate that can be added; nothing was changed"
}

# Some shells cannot compare numbers with fourteen digits.
is_earlier() {
  awk 'BEGIN { exit !(ARGV[1] + 0 < ARGV[2] + 0) }' "$1" "$2"
}

# ---------------------------------------------------------------------------------------------------------------------
# Plans
#
# Every store lists its certificates in one form, a line with base64 and name, and is changed by the same plan: add each
# wanted root that the store does not have under any name, and remove what has a name of this vault and is not wanted.

# base64_lines NAME: reads PEM and prints the base64 of each certificate on one line, a tab, and the name.
base64_lines() {
  awk -v name="$1" '
    { sub(/\r$/, "") }
    $0 == "-----BEGIN CERTIFICATE-----" { inside = 1; body = ""; next }
    $0 == "-----END CERTIFICATE-----" { if (inside) { print body "\t" name; found = 1 } inside = 0; next }
    inside { body = body $0 }
    END { if (!found) print "-\t" name }'
}

# make_plan: prints from `have` and `wanted` the lines "remove NAME" and "add NAME".
make_plan() {
  awk -F '\t' -v ours="$ours" '
    kind == "wanted" { if (!($1 in name)) order[++count] = $1; name[$1] = $2; next }
    { found[$1] = 1 }
    !($1 in name) && index($2, ours) == 1 {
      rest = substr($2, length(ours) + 1)
      if (length(rest) == 16 && rest !~ /[^0-9a-f]/ && !gone[$2]++) print "remove " $2
    }
    END { for (i = 1; i <= count; i++) if (!(order[i] in found)) print "add " name[order[i]] }
  ' kind=wanted "$scratch/wanted" kind=have "$scratch/have" >"$scratch/actions" ||
    fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
}

# print_plan WHERE: for --dry-run.
print_plan() {
  while IFS=' ' read -r verb entry <&4; do
    printf 'would %s %s: %s\n' "$verb" "$entry" "$1"
  done 4<"$scratch/actions"
}

# report WHERE: says what the plan did.
report() {
  while IFS=' ' read -r verb entry <&4; do
    case $verb in
      add) info "added $entry to $1" ;;
      remove) info "removed $entry from $1" ;;
    esac
    changed=yes
  done 4<"$scratch/actions"
}

# ---------------------------------------------------------------------------------------------------------------------
# The system's trust store

# has_program NAME: in the system that is changed.
has_program() {
  if [ -z "$root" ]; then
    command -v "$1" >/dev/null 2>&1
  else
    for has_in in usr/sbin usr/bin sbin bin usr/local/sbin; do
      [ ! -x "$root/$has_in/$1" ] || return 0
    done
    return 1
  fi
}

# Sets kind, the directory for certificates (anchors), the end of the names of files that count (suffix), the command that
# makes the system read them (rebuild), its package, and where the result is (bundle).
find_system() {
  kind=directory suffix='' package='' bundle=''
  if [ -z "$root" ] && [ "$(uname -s 2>/dev/null)" = Darwin ]; then
    kind=keychain anchors=$state_root/trust suffix=.crt rebuild=security
  elif [ -d "$root/etc/pki/ca-trust/source/anchors" ]; then
    # Red Hat, Fedora and their relatives.
    anchors=$root/etc/pki/ca-trust/source/anchors
    rebuild="update-ca-trust${newline}extract" package=ca-certificates
    bundle=$root/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
  elif [ -d "$root/etc/pki/trust/anchors" ]; then
    # SUSE
    anchors=$root/etc/pki/trust/anchors rebuild=update-ca-certificates package=ca-certificates
    bundle=$root/var/lib/ca-certificates/ca-bundle.pem
  elif [ -d "$root/etc/ca-certificates/trust-source/anchors" ]; then
    # Arch. `trust anchor --store` writes to the same place, but picks the names.
    anchors=$root/etc/ca-certificates/trust-source/anchors rebuild=update-ca-trust package=ca-certificates-utils
    bundle=$root/etc/ca-certificates/extracted/tls-ca-bundle.pem
  elif has_program certctl && [ -d "$root/usr/share/certs" ]; then
    # FreeBSD
    anchors=$root/usr/local/share/certs rebuild="certctl${newline}rehash" suffix=.crt bundle=$root/etc/ssl/certs
  elif has_program update-ca-certificates || [ -d "$root/usr/local/share/ca-certificates" ] || [ -f "$root/etc/alpine-release" ]; then
    # Debian, Ubuntu, Alpine and their relatives.
    anchors=$root/usr/local/share/ca-certificates suffix=.crt rebuild=update-ca-certificates package=ca-certificates
    bundle=$root/etc/ssl/certs/ca-certificates.crt
  else
    fail 1 "the trust store of this system is unknown.
Try: --no-system, and add $url to the system as its documentation says"
  fi
  has_program "${rebuild%%"$newline"*}" ||
    fail 1 "the program ${rebuild%%"$newline"*} is not installed${package:+$newline"Fix: install the package $package"}"
  marker=$state_root/trust-changing store_name="the system's trust store"
  anchors_writable "$anchors" || cannot_change_system
}

# anchors_writable DIRECTORY: or, if it is missing, the directory above.
anchors_writable() {
  writable=$1
  until [ -e "$writable" ]; do
    writable=${writable%/*}
    [ -n "$writable" ] || writable=/
  done
  [ -d "$writable" ] && [ -w "$writable" ] || return 1
  # A link in an image may lead out of it.
  case $(real_path "$writable")/ in
    "$root"/*) return 0 ;;
    *) return 1 ;;
  esac
}

cannot_change_system() {
  [ "$my_uid" -eq 0 ] || fail "$exit_write" "only root can change the system's trust store
Try: sudo, or --no-system to change only your own stores"
  fail "$exit_write" "cannot write to $writable; is it read-only, or outside --root?"
}

# list_files DIRECTORY PATTERN: prints the readable files whose names end so, without those of killed runs, which begin with
# a dot. find(1) is missing on minimal systems.
list_files() {
  (
    set +f
    # shellcheck disable=SC2231 # a pattern
    for listed in "$1"/*$2; do
      [ ! -f "$listed" ] || [ ! -r "$listed" ] || printf '%s\n' "$listed"
    done
  )
}

list_directory() {
  for file in $(list_files "$anchors" "$suffix"); do
    file_name=${file##*/}
    base64_lines "${file_name%.crt}" <"$file"
  done
}

# On macOS the files are only our record; the keychain has the certificates. A certificate counts if macOS trusts it.
list_keychain() {
  for file in $(list_files "$anchors" .crt); do
    file_name=${file##*/}
    is_in_keychain "$file" || file=/dev/null
    base64_lines "${file_name%.crt}" <"$file"
  done
  while IFS=$tab read -r body entry <&4; do
    ! is_in_keychain "$scratch/$entry.crt" || printf '%s\tkeychain\n' "$body"
  done 4<"$scratch/wanted"
}

# -l: the certificate is that of a CA. -L: without the network.
is_in_keychain() {
  security verify-cert -q -l -L -c "$1" >/dev/null 2>&1 </dev/null
}

keychain=/Library/Keychains/System.keychain

# Whether the system's own list, which rebuild makes, has all wanted roots. True if there is no such list.
is_bundled() {
  [ -n "$bundle" ] && [ -e "$bundle" ] || return 0
  if [ -d "$bundle" ]; then
    for file in $(list_files "$bundle" '.[0-9]'); do
      base64_lines bundle <"$file"
    done
  else
    base64_lines bundle <"$bundle"
  fi | awk -F '\t' '
    kind == "wanted" { missing[$1] = 1; next }
    { delete missing[$1] }
    END { for (one in missing) exit 1 }' kind=wanted "$scratch/wanted" kind=bundle -
}

plan_system() {
  list_"$kind" >"$scratch/have" || fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
  make_plan
}

change_system() {
  plan_system
  # The marker is there if another run is changing the store, or was killed before the system had read the files.
  if [ ! -s "$scratch/actions" ] && [ ! -e "$marker" ] && is_bundled; then return 0; fi
  if [ "$dry_run" = yes ]; then
    print_plan "$anchors"
    [ "$kind" = keychain ] || printf 'would run %s\n' "$(printf '%s' "$rebuild" | tr '\n' ' ')"
    changed=yes
    return
  fi
  begin_system
  # Another run may have changed the store meanwhile.
  plan_system
  while IFS=' ' read -r verb entry <&4; do
    "${verb}_$kind" "$entry" || fail "$exit_write" "cannot change $anchors: $problem; nothing was changed"
  done 4<"$scratch/actions"
  if [ "$kind" = directory ]; then
    rebuild_system || fail "$exit_write" "${rebuild%%"$newline"*} failed; nothing was changed$newline$(tail -n 3 "$scratch/rebuild" | tr -d '\000-\010\013-\037')"
    is_bundled || fail "$exit_write" "${rebuild%%"$newline"*} did not add the root to $bundle; nothing was changed"
  fi
  undo=no
  rm -f "$marker"
  rmdir "$state_root/trust" "$state_root" 2>/dev/null
  # Without changes to files, the system had not read those that are there.
  [ -s "$scratch/actions" ] || info "rebuilt $store_name from $anchors"
  report "$store_name"
  changed=yes
}

# Creates the marker, with the process id of this run; one run at a time changes the store. From here on until undo=no,
# cleanup restores what was there before.
begin_system() {
  waited=0
  # -C: fails if the file exists.
  until (mkdir -p "$state_root" && (umask 022; mkdir -p "$anchors") && set -C && printf '%s\n' "$$" >"$marker") 2>/dev/null; do
    waited=$((waited + 1))
    runner=$(cat "$marker" 2>/dev/null)
    if [ ! -e "$marker" ] && [ "$waited" -gt 3 ]; then
      fail "$exit_write" "cannot write to $anchors and $state_root; nothing was changed"
    elif [ "$waited" -gt 120 ]; then
      fail "$exit_busy" "another run (process $runner) has been changing $store_name for two minutes; nothing was changed
Try: remove $marker, if that process is another program"
    elif is_dead_run; then
      rm -f "$marker"
    else
      sleep 1
    fi
  done
  # What a killed run left.
  (set +f; rm -f "$anchors/.$ours"*)
  true >"$scratch/done" || fail "$exit_write" "cannot write to ${scratch%/*}; is that disk full?"
  undo=yes
}

# Whether the marker's run has ended. A new marker is empty for a moment.
is_dead_run() {
  case $runner in
    '') [ -e "$marker" ] && [ "$waited" -gt 1 ] ;;
    *[!0-9]*) return 0 ;;
    *) ! kill -0 "$runner" 2>/dev/null ;;
  esac
}

# Each of these is recorded in `done` before it happens. A file gets its name when it is complete.
add_directory() {
  problem="cannot write $1.crt; is the file system full or read-only?"
  printf 'add %s\n' "$1" >>"$scratch/done" &&
    put_file "$scratch/$1.crt" "$anchors" "$1.crt"
}

# cmp(1) is missing on minimal systems.
is_same() {
  [ "$(cksum <"$1")" = "$(cksum <"$2")" ]
}

put_file() {
  {
    cp "$1" "$2/.$3.new.$$" && is_same "$1" "$2/.$3.new.$$" && chmod 644 "$2/.$3.new.$$" && mv -f "$2/.$3.new.$$" "$2/$3"
  } 2>/dev/null
}

remove_directory() {
  problem="cannot remove $1.crt"
  {
    cp "$anchors/$1.crt" "$scratch/$1.old" && printf 'remove %s\n' "$1" >>"$scratch/done" && rm -f "$anchors/$1.crt"
  } 2>/dev/null
}

add_keychain() {
  problem="macOS refused the certificate"
  add_directory "$1" || return 1
  security add-trusted-cert -d -r trustRoot -k "$keychain" "$anchors/$1.crt" >"$scratch/rebuild" 2>&1 </dev/null || {
    problem="macOS refused the certificate: $(tail -n 1 "$scratch/rebuild" | tr -d '[:cntrl:]')"
    return 1
  }
}

remove_keychain() {
  problem="macOS kept $1"
  security remove-trusted-cert -d "$anchors/$1.crt" >/dev/null 2>&1 </dev/null
  # It may be gone already.
  keychain_sum=$(cp "$anchors/$1.crt" "$scratch/ca.crt" && read_certificates && IFS=$tab read -r _ _ _ _ bytes <"$scratch/certificates" &&
    printf '%b' "$bytes" | sha256)
  security delete-certificate -Z "$keychain_sum" "$keychain" >/dev/null 2>&1 </dev/null
  ! is_in_keychain "$anchors/$1.crt" && remove_directory "$1"
}

rebuild_system() {
  # shellcheck disable=SC2086 # program and arguments, to be split
  set -- $rebuild
  [ -z "$root" ] || set -- chroot "$root" "$@"
  (umask 022; exec "$@") >"$scratch/rebuild" 2>&1 </dev/null
}

# Restores what was there before, after an error or a signal.
undo_system() {
  undo=no
  undone=yes
  (set +f; rm -f "$anchors/.$ours"*)
  # The last change first.
  awk '{ line[NR] = $0 } END { for (i = NR; i; i--) print line[i] }' "$scratch/done" >"$scratch/undo" || undone=no
  while IFS=' ' read -r verb entry <&4; do
    case $kind-$verb in
      *-add)
        [ "$kind" = directory ] || security remove-trusted-cert -d "$anchors/$entry.crt" >/dev/null 2>&1 </dev/null
        rm -f "$anchors/$entry.crt" || undone=no
        ;;
      directory-remove) put_file "$scratch/$entry.old" "$anchors" "$entry.crt" || undone=no ;;
      keychain-remove)
        put_file "$scratch/$entry.old" "$anchors" "$entry.crt" &&
          security add-trusted-cert -d -r trustRoot -k "$keychain" "$anchors/$entry.crt" >/dev/null 2>&1 </dev/null || undone=no
        ;;
    esac
  done 4<"$scratch/undo"
  [ "$kind" = keychain ] || rebuild_system || undone=no
  if [ "$undone" = yes ]; then
    rm -f "$marker"
    rmdir "$state_root/trust" "$state_root" 2>/dev/null
  else
    message err "cannot restore $anchors; run this script again when the cause is fixed"
  fi
}

# ---------------------------------------------------------------------------------------------------------------------
# Java

# Prints "STORE HOME" with a tab for each store: the path without links, and the directory with Java's programs. Several
# versions of Java may share one store.
find_java_stores() {
  if [ -n "$java_given" ]; then
    for store in $java_given; do
      printf '%s\t%s\n' "$(real_path "$store")" "${JAVA_HOME:--}"
    done
    return
  fi
  {
    [ -z "${JAVA_HOME:-}" ] || printf '%s\n' "$JAVA_HOME"
    (
      set +f
      for home in /usr/lib/jvm/* /usr/java/* /usr/local/openjdk* /usr/local/lib/jvm/* /opt/* /opt/java/* \
        /Library/Java/JavaVirtualMachines/*/Contents/Home; do
        [ ! -d "$home" ] || printf '%s\n' "$home"
      done
    )
  } | while IFS= read -r home; do
    for store in "$home/lib/security/cacerts" "$home/jre/lib/security/cacerts"; do
      [ ! -f "$store" ] || printf '%s\t%s\n' "$(real_path "$store")" "$home"
    done
  done | awk -F '\t' '!seen[$1]++'
}

# True for stores that the system's own command writes from the system's trust store.
is_generated() {
  case $1 in
    /etc/ssl/certs/java/*) [ -d /etc/ca-certificates/update.d ] && [ -n "$(ls /etc/ca-certificates/update.d 2>/dev/null)" ] ;;
    /etc/pki/ca-trust/* | /var/lib/ca-certificates/* | /etc/ca-certificates/*) return 0 ;;
    *) return 1 ;;
  esac
}

# find_keytool HOME: sets keytool to a program that no other user can replace.
find_keytool() {
  for keytool in "$1/bin/keytool" "$1/jre/bin/keytool"; do
    [ -x "$keytool" ] || continue
    keytool=$(real_path "$keytool")
    ! is_safe "$keytool" || return 0
  done
  keytool=$(command -v keytool 2>/dev/null)
}

# run_keytool STORE COMMAND...: with the password that Java's own stores have; it is no secret.
run_keytool() {
  keytool_store=$1
  shift
  "$keytool" "$@" -keystore "$keytool_store" -storepass changeit -J-Duser.language=en -J-Duser.country=US </dev/null
}

# list_java STORE: fails if keytool cannot read the store.
list_java() {
  run_keytool "$1" -list -rfc >"$scratch/keytool" 2>"$scratch/error" || {
    # keytool writes its errors to standard output.
    problem=$(cat "$scratch/keytool" "$scratch/error" | grep -i error | head -n 1 | tr -d '[:cntrl:]' | cut -c 1-300)
    return 1
  }
  awk '
    { sub(/\r$/, "") }
    /^Alias name: / { name = substr($0, 13); next }
    /^-----BEGIN CERTIFICATE-----$/ { inside = 1; body = ""; next }
    /^-----END CERTIFICATE-----$/ { if (inside) print body "\t" name; inside = 0; next }
    inside { body = body $0 }' "$scratch/keytool" >"$scratch/have"
}

change_java() {
  find_java_stores >"$scratch/java"
  while IFS=$tab read -r store home <&5; do
    change_java_store
  done 5<"$scratch/java"
}

# A store that is missing after an interrupted write would break every connection of Java. Therefore keytool changes a
# copy, which replaces the store when it is complete.
change_java_store() {
  if [ ! -f "$store" ]; then
    store_failed "--java-store: no such file"
    return
  fi
  if is_generated "$store"; then
    [ "$changed$with_system" = noyes ] || info "$store is generated from the system's trust store; left to the system"
    return
  fi
  if ! is_safe "$store" || is_sticky "${store%/*}"; then
    warn "skipped $store: another user can change it. Try: run this script as that user, with --no-system"
    return
  fi
  if [ ! -w "$store" ] || [ ! -w "${store%/*}" ]; then
    if [ "$my_uid" -ne 0 ]; then
      warn "skipped $store: only its owner can change it"
    else
      store_failed "cannot write to $store; is the file system read-only?"
    fi
    return
  fi
  find_keytool "$home"
  if [ -z "$keytool" ]; then
    warn "skipped $store: the program keytool is not installed. Fix: install a Java runtime that has it"
    return
  fi
  if ! list_java "$store"; then
    store_failed "keytool cannot read $store, so it stays as it is: ${problem:-unknown error}"
    return
  fi
  make_plan
  [ -s "$scratch/actions" ] || return 0
  if [ "$dry_run" = yes ]; then
    print_plan "$store"
    changed=yes
    return
  fi
  java_copy=${store%/*}/.${store##*/}.certificate-vault.$$
  (set +f; rm -f "${store%/*}/.${store##*/}.certificate-vault."*)
  java_before=$(cksum <"$store")
  if ! { cp -p "$store" "$java_copy" && is_same "$store" "$java_copy"; } 2>/dev/null; then
    store_failed "cannot write to ${store%/*}; is that disk full?"
  elif ! change_java_copy; then
    store_failed "keytool cannot change $store, so it stays as it is: ${problem:-unknown error}"
  elif [ "$(cksum <"$store")" != "$java_before" ]; then
    store_failed "another program changed $store at the same time; run this script again"
  elif ! mv -f "$java_copy" "$store"; then
    store_failed "cannot replace $store"
  else
    java_copy=''
    report "$store"
    return
  fi
  rm -f "$java_copy"
  java_copy=''
}

change_java_copy() {
  cp "$scratch/actions" "$scratch/java-actions" || return 1
  while IFS=' ' read -r verb entry <&4; do
    case $verb in
      add) set -- -importcert -noprompt -alias "$entry" -file "$scratch/$entry.crt" ;;
      remove) set -- -delete -alias "$entry" ;;
    esac
    run_keytool "$java_copy" "$@" >"$scratch/keytool" 2>&1 || {
      problem=$(grep -i error "$scratch/keytool" | head -n 1 | tr -d '[:cntrl:]' | cut -c 1-300)
      return 1
    }
  done 4<"$scratch/java-actions"
  list_java "$java_copy" || return 1
  make_plan
  problem='the copy lacks the changes'
  [ ! -s "$scratch/actions" ] && mv -f "$scratch/java-actions" "$scratch/actions"
}

# ---------------------------------------------------------------------------------------------------------------------
# NSS: the databases of Firefox and Chromium

# With sudo or doas, the databases are those of the user who called it.
find_nss_user() {
  nss_user='' nss_home=${HOME:-}
  [ "$my_uid" -eq 0 ] || return 0
  nss_user=${SUDO_USER:-${DOAS_USER:-}}
  case $nss_user in
    root | -* | *[!A-Za-z0-9._@\\+-]*) nss_user='' ;;
  esac
  if [ -z "$nss_user" ]; then
    [ -z "$nss_home" ] || is_safe "$(real_path "$nss_home")" || nss_home=''
    return
  fi
  nss_uid=$(id -u "$nss_user" 2>/dev/null) nss_group=$(id -g "$nss_user" 2>/dev/null)
  nss_home=$(getent passwd "$nss_user" 2>/dev/null | cut -d : -f 6)
  [ -n "$nss_home" ] || nss_home=$(awk -F : -v user="$nss_user" '$1 == user { print $6 }' /etc/passwd 2>/dev/null)
  [ -n "$nss_home" ] || nss_home=$(dscl . -read "/Users/$nss_user" NFSHomeDirectory 2>/dev/null | sed -n 's/^NFSHomeDirectory: //p')
}

# Runs a program as that user, who could otherwise let root write elsewhere by links. Without a session of its own, it could
# type commands into root's terminal.
# shellcheck disable=SC2016 # the inner shell expands these
as_nss_user() {
  if [ -z "$nss_user" ]; then
    "$@"
  else
    (
      cd / || exit 1
      set -- env -i PATH="$PATH" LC_ALL=C HOME="$nss_home" "$@"
      if command -v setpriv >/dev/null 2>&1; then
        set -- setpriv --reuid="$nss_uid" --regid="$nss_group" --init-groups --no-new-privs -- "$@"
      elif [ -n "${SUDO_USER:-}" ] && command -v sudo >/dev/null 2>&1; then
        set -- sudo -n -u "$nss_user" -- "$@"
      elif [ "$(uname -s 2>/dev/null)" = Linux ]; then
        set -- su -s /bin/sh -c 'exec "$@"' -- "$nss_user" sh "$@"
      else
        set -- su -m "$nss_user" -c 'exec "$@"' sh "$@"
      fi
      ! command -v setsid >/dev/null 2>&1 || set -- setsid "$@"
      exec env -i PATH="$PATH" LC_ALL=C SHELL=/bin/sh "$@" 4<&- 5<&-
    )
  fi
}

find_nss_databases() {
  (
    set +f
    for found in "$nss_home/.pki/nssdb" "$nss_home/.local/share/pki/nssdb" "$nss_home/snap/chromium/current/.pki/nssdb" \
      "$nss_home"/.mozilla/firefox/* "$nss_home"/snap/firefox/common/.mozilla/firefox/* \
      "$nss_home"/.var/app/org.mozilla.firefox/.mozilla/firefox/* \
      "$nss_home/Library/Application Support/Firefox/Profiles"/*; do
      [ ! -f "$found/cert9.db" ] || printf '%s\n' "$found"
    done
  )
}

# run_certutil COMMAND...: on `database`. An empty password file fails where certutil would prompt for a password.
run_certutil() {
  as_nss_user certutil "$@" -d "sql:$database" -f /dev/null
}

# Prints the certificates that the database trusts to issue for servers. One of ours that the user distrusted has no
# base64, so that it is added again.
list_nss() {
  run_certutil -L >"$scratch/nss" 2>"$scratch/error" </dev/null || {
    problem=$(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]' | cut -c 1-300)
    return 1
  }
  sed -n 's/^\(.*[^ ]\)  *\([A-Za-z]*\),[A-Za-z]*,[A-Za-z]* *$/\2,\1/p' "$scratch/nss" >"$scratch/nicknames"
  while IFS= read -r nickname <&4; do
    case $nickname in
      *C*,*) run_certutil -L -a -n "${nickname#*,}" 2>/dev/null </dev/null | base64_lines "${nickname#*,}" ;;
      *",$ours"*) printf -- '-\t%s\n' "${nickname#*,}" ;;
    esac
  done 4<"$scratch/nicknames" >"$scratch/have"
}

change_nss() {
  find_nss_user
  [ -n "$nss_home" ] || return 0
  find_nss_databases >"$scratch/databases"
  [ -s "$scratch/databases" ] || return 0
  if ! command -v certutil >/dev/null 2>&1; then
    warn "skipped $(wc -l <"$scratch/databases" | tr -d ' ') databases of browsers in $nss_home: certutil is not installed
Fix: install libnss3-tools (Debian, Ubuntu), nss-tools (Red Hat, Alpine), mozilla-nss-tools (SUSE) or nss, and run this script again"
    return
  fi
  while IFS= read -r database <&5; do
    change_nss_database
  done 5<"$scratch/databases"
}

change_nss_database() {
  if ! list_nss; then
    store_failed "certutil cannot read $database: ${problem:-unknown error}"
    return
  fi
  make_plan
  [ -s "$scratch/actions" ] || return 0
  if [ "$dry_run" = yes ]; then
    print_plan "$database"
    changed=yes
    return
  fi
  while IFS=' ' read -r verb entry <&4; do
    case $verb in
      add) run_certutil -A -a -t C,, -n "$entry" <"$scratch/$entry.crt" ;;
      remove) run_certutil -D -n "$entry" </dev/null ;;
    esac >/dev/null 2>"$scratch/error" || {
      # certutil stores the certificate before it fails to trust it.
      [ "$verb" = remove ] || run_certutil -D -n "$entry" >/dev/null 2>&1 </dev/null
      store_failed "certutil cannot $verb $entry in $database: $(tail -n 1 "$scratch/error" | tr -d '[:cntrl:]' | cut -c 1-300)
Try: remove the primary password of this profile for a moment, or import the root in the browser's settings"
      return
    }
  done 4<"$scratch/actions"
  report "$database"
}

# ---------------------------------------------------------------------------------------------------------------------

main() {
  # If the script comes through a pipe, standard input is the script.
  exec </dev/null
  set -u
  initialize
  read_options "$@"
  if [ "$action" = help ]; then
    usage
    exit 0
  fi
  check_options
  state_root=${CERTIFICATE_VAULT_HOME:-$root/var/lib/certificate-vault}
  [ "$with_system" = no ] || find_system
  make_scratch
  if [ "$action" = install ]; then
    download
    find_roots
  fi
  [ "$with_system" = no ] || change_system
  [ "$with_java" = no ] || change_java
  [ "$with_nss" = no ] || change_nss
  if [ "$changed" = no ] && [ "$worst" -eq 0 ]; then
    if [ "$action" = install ]; then
      info "nothing to change: this machine trusts $ca_shown already"
    else
      info "nothing to remove: no store has an entry for ${ca:+$ca_shown of }$server"
    fi
  fi
  exit "$worst"
}

main "$@"
