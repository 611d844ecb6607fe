# ---------------------------------------------------------------------------------------------------------------------
# A run: trust

# If the job trusts a root of this vault, its CA file follows /client/ca.crt: during a rotation of the private CA the vault
# serves both roots, and from then on the new one. Other certificates in the file stay. The files of this run were
# downloaded already, so that a failure is a warning.
refresh_ca() {
  if [ "$ca" = no ] || [ "$server_scheme" != https ]; then return 0; fi
  rm -f "$ca_path.new"
  ca_mark="# The vault's roots at $server, which each run of the job updates:"
  http_get /client/ca.crt "$scratch/ca.crt"
  ca_change=invalid
  if [ "$http_status" = 200 ]; then ca_change=$(next_ca) || ca_change=invalid; fi
  case $ca_change in
    invalid)
      # Without the mark, nothing says that the file has a root of this vault.
      ! grep -F -x "$ca_mark" "$ca_path" >/dev/null 2>&1 ||
        warn "cannot update the roots in $ca_path: $http_url: ${http_error:-status $http_status, or not certificates in PEM format}"
      return 0
      ;;
    unrelated) return 0 ;;
  esac
  ! is_same_file "$scratch/ca.pem" "$ca_path" || return 0
  # The next run must trust the vault too.
  ca_kept=$ca_path ca_path=$scratch/ca.pem
  http_get /client/ca.crt "$scratch/ca.crt"
  ca_path=$ca_kept
  if [ "$http_status" != 200 ]; then
    warn "kept the roots in $ca_path, because the vault's own certificate is not signed by one that it serves now: $http_url: $http_error"
  elif {
    cp "$scratch/ca.pem" "$ca_path.new" && is_same_file "$scratch/ca.pem" "$ca_path.new" && chmod 0600 "$ca_path.new" &&
      to_disk "$ca_path.new" && mv -f "$ca_path.new" "$ca_path" && to_disk "$job_directory"
  } 2>/dev/null; then
    [ "$ca_change" = same ] || info "the roots of the private CA changed; updated $ca_path"
  else
    rm -f "$ca_path.new" 2>/dev/null
    warn "cannot update the roots in $ca_path: cannot write to $job_directory"
  fi
}

is_same_file() {
  [ "$(checksum "$1")" = "$(checksum "$2")" ]
}

# Writes the next CA file to the scratch directory: what the user added, the mark, and what the vault serves. Prints whether
# its certificates are the `same` or `changed`, or `unrelated` if the job trusts no root of this vault. Fails if the vault
# served anything but complete PEM blocks of certificates.
next_ca() {
  bounded awk -v mark="$ca_mark" -v next_file="$scratch/ca.pem" '
    { sub(/\r$/, "") }
    kind == "served" && $0 == "-----BEGIN CERTIFICATE-----" { if (inside) wrong = 1; inside = 1; body = ""; next }
    kind == "served" && $0 == "-----END CERTIFICATE-----" {
      if (!inside || body == "" || ++count > 50) { wrong = 1; exit }
      inside = 0; served[body] = 1; ours = ours block(body)
      next
    }
    kind == "served" && inside && /^[A-Za-z0-9+\/]+=?=?$/ && length(body) < 20000 { body = body $0; next }
    kind == "served" && !inside && /^(#.*)?$/ { next }
    kind == "served" { wrong = 1; exit }
    $0 == mark { marked = 1 }
    /^-----BEGIN / { if (inside) wrong = 1; inside = 1; label = $0; body = ""; text = $0 "\n"; next }
    inside { text = text $0 "\n" }
    inside && /^-----END / {
      inside = 0
      if (label == "-----BEGIN CERTIFICATE-----" && body in served) { related = 1; kept[body] = 1 }
      else if (marked) { related = 1; gone = 1 }
      else theirs = theirs text
    }
    inside { body = body $0 }
    END {
      if (wrong || inside || !count) exit 1
      if (!related) { print "unrelated"; exit }
      for (one in served) if (!(one in kept)) gone = 1
      printf "%s%s\n%s", theirs, mark, ours >next_file
      if (close(next_file)) exit 1
      print (gone ? "changed" : "same")
    }
    function block(base64,   lines) {
      for (lines = ""; base64 != ""; base64 = substr(base64, 65)) lines = lines substr(base64, 1, 64) "\n"
      return "-----BEGIN CERTIFICATE-----\n" lines "-----END CERTIFICATE-----\n"
    }' kind=served "$scratch/ca.crt" kind=kept "$ca_path"
}

