# ---------------------------------------------------------------------------------------------------------------------
# A run: check

# check_pem ARTIFACT FILE: requires complete PEM blocks of the right type and nothing else. Only chain.crt may be empty.
check_pem() {
  pem_keys=0 pem_least=1 pem_most=100
  case $1 in
    private.key | private-key.pem) pem_keys=1 pem_most=1 ;;
    combined.pem) pem_keys=1 pem_least=2 ;;
    chain.crt) pem_least=0 ;;
  esac
  bounded awk -v keys="$pem_keys" -v least="$pem_least" -v most="$pem_most" '
    { sub(/\r$/, ""); label = blocks < keys ? "PRIVATE KEY" : "CERTIFICATE" }
    $0 == "-----BEGIN " label "-----" { if (inside) wrong = 1; inside = 1; size = 0; next }
    $0 == "-----END " label "-----" { if (!inside || !size) wrong = 1; inside = 0; blocks++; next }
    inside && /^[A-Za-z0-9+\/]+=?=?$/ { size += length($0); next }
    !inside && /^$/ { next }
    { wrong = 1 }
    END { exit wrong || inside || blocks < least || blocks > most }
  ' "$2" || fail "$exit_check" "$1: the server sent an incomplete or invalid PEM file; nothing was changed"
}

# check_der ARTIFACT FILE: requires one DER sequence with nothing after it.
check_der() {
  od -A n -v -t u1 -N 5 "$2" | awk -v size="$(byte_count "$2")" '
    { for (i = 1; i <= NF; i++) byte[++count] = $i }
    END {
      long = byte[2] > 128 ? byte[2] - 128 : 0
      for (i = 1; i <= long; i++) rest = rest * 256 + byte[2 + i]
      exit byte[1] != 48 || long > 3 || size != 2 + long + (long ? rest : byte[2])
    }' || fail "$exit_check" "$1: the server sent an incomplete or invalid DER file; nothing was changed"
}

# Prints the path of the file that will be current after this run: the new one, or the one on disk.
effective() {
  if [ -f "$staging/$1" ]; then printf '%s\n' "$staging/$1"; else printf '%s\n' "$disk/$1"; fi
}

check_all() {
  installed_version=''
  [ ! -r "$run_state/state" ] || IFS= read -r installed_version <"$run_state/state" || :
  installed_version=${installed_version%%"$tab"*}
  if [ "$has_openssl" = no ]; then
    [ "$fetched" = no ] || info "openssl is not installed; skipped the checks for expiry, for an older certificate and for a matching key"
    # Without openssl, compare version numbers.
    [ -z "$installed_version" ] || [ -z "$(first_leaf)" ] || [ ! -f "$disk/$(first_leaf)" ] ||
      [ "$pinned" -ge "$installed_version" ] || fail "$exit_check" "$(older_message)"
    return
  fi
  for line in $files; do
    if is_der "${line%% *}"; then check_converted "${line%% *}" "${line#* }"; fi
    is_leaf "${line%% *}" || continue
    leaf_path=$(effective "${line#* }")
    check_leaf "$leaf_path" "$disk/${line#* }"
    check_keys "$leaf_path"
  done
}

# check_converted ARTIFACT OUTPUT: checks the PEM form of a file that is not PEM.
check_converted() {
  leaf_path=$(effective "$2")
  to_pem "$1" "$leaf_path" "$scratch/new.pem" || case $1 in
    keystore.p12) fail "$exit_check" "openssl cannot open keystore.p12 with the password of this job; nothing was changed" ;;
    *) fail "$exit_check" "the server sent a certificate that openssl cannot parse" ;;
  esac
  if [ "$leaf_path" = "$disk/$2" ]; then
    check_leaf "$scratch/new.pem" "$scratch/new.pem"
  else
    # With another password, the file on disk does not open.
    { [ -f "$disk/$2" ] && to_pem "$1" "$disk/$2" "$scratch/old.pem"; } || rm -f "$scratch/old.pem"
    check_leaf "$scratch/new.pem" "$scratch/old.pem"
  fi
  check_keys "$scratch/new.pem"
  [ "$1" != keystore.p12 ] || [ "$(bounded openssl pkey -pubout -in "$scratch/new.pem" 2>/dev/null </dev/null)" = "$leaf_key" ] ||
    fail "$exit_check" "the private key in keystore.p12 does not match its certificate; nothing was changed"
  rm -f "$scratch/new.pem" "$scratch/old.pem"
}

# to_pem ARTIFACT FILE PEM: converts the leaf certificate, and in a keystore also the key. Fails if openssl cannot.
to_pem() {
  case $1 in
    certificate.der) bounded openssl x509 -inform DER -in "$2" -out "$3" ;;
    keystore.p12)
      bounded openssl pkcs12 -clcerts -nodes -passin "file:$job_directory/keystore-password" -in "$2" -out "$3" && [ -s "$3" ]
      ;;
  esac >/dev/null 2>&1 </dev/null
}

check_leaf() {
  bounded openssl x509 -noout -checkend 0 -in "$1" >/dev/null 2>&1 </dev/null || {
    bounded openssl x509 -noout -in "$1" >/dev/null 2>&1 </dev/null || fail "$exit_check" "the server sent a certificate that openssl cannot parse"
    fail "$exit_check" "the certificate in the vault has expired; nothing was changed"
  }
  [ "$1" != "$2" ] || return 0
  leaf_begins=$(not_before "$1")
  [ "$allow_early" = yes ] || { [ -f "$2" ] && cmp -s "$1" "$2"; } || ! is_earlier "$(date -u '+%Y%m%d%H%M%S')" "$leaf_begins" ||
    fail "$exit_check" "the certificate in the vault is not valid before $(start_date "$1"), and this machine's clock says $(date -u); \
nothing was changed
Fix: set the clock, or use --allow-not-yet-valid once if it stays wrong"
  [ -f "$2" ] || return 0
  disk_begins=$(not_before "$2")
  # Replace an unreadable certificate on disk.
  [ -n "$disk_begins" ] || return 0
  ! is_earlier "$leaf_begins" "$disk_begins" || fail "$exit_check" "$(older_message)"
  # The versions of a certificate that was deleted and created again start at 1.
  [ -z "$installed_version" ] || [ "$pinned" -ge "$installed_version" ] || is_earlier "$disk_begins" "$leaf_begins" ||
    fail "$exit_check" "$(older_message)"
}

# is_earlier TIME TIME: whether the first one is earlier. Some shells cannot compare numbers with fourteen digits, and some
# read a number that begins with 0 as octal. An empty time is the earliest.
is_earlier() {
  one_day=${1%??????} other_day=${2%??????}
  [ "${one_day:-0}" -lt "${other_day:-0}" ] ||
    { [ "$one_day" = "$other_day" ] && [ "1${1#"$one_day"}" -lt "1${2#"$other_day"}" ]; }
}

older_message() {
  printf '%s\n' "the server sent a certificate that is older than the one in $destination; nothing was changed. To install it anyway, \
remove $destination/$(first_leaf) and run the job again"
}

start_date() {
  bounded openssl x509 -noout -startdate -in "$1" 2>/dev/null </dev/null | sed 's/^notBefore=//'
}

not_before() {
  bounded openssl x509 -noout -startdate -in "$1" 2>/dev/null </dev/null | sortable_date
}

not_after() {
  bounded openssl x509 -noout -enddate -in "$1" 2>/dev/null </dev/null | sortable_date
}

# Prints a date of openssl, such as notBefore=Nov 28 12:20:58 2026 GMT, as a sortable number. Parsing dates with `date` is
# not portable.
sortable_date() {
  awk '
    { sub(/^not[A-Za-z]*=/, "")
      split($3, time, ":"); month = (index("JanFebMarAprMayJunJulAugSepOctNovDec", $1) + 2) / 3
      if (NF >= 4) printf "%04d%02d%02d%02d%02d%02d\n", $4, month, $2, time[1], time[2], time[3] }'
}

check_keys() {
  leaf_key=$(bounded openssl x509 -noout -pubkey -in "$1" 2>/dev/null </dev/null)
  for key_line in $files; do
    is_key "${key_line%% *}" || continue
    own_key=$(bounded openssl pkey -pubout -in "$(effective "${key_line#* }")" 2>/dev/null </dev/null)
    if [ -z "$own_key" ] || [ "$own_key" != "$leaf_key" ]; then
      fail "$exit_check" "${key_line%% *} does not match the certificate; nothing was changed"
    fi
  done
}

