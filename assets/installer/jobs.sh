# ---------------------------------------------------------------------------------------------------------------------
# Jobs on disk

# The job id is derived from server, certificate and destination: a readable part and a checksum of all three. If two jobs
# have the same checksum, the later one gets a number.
find_job_id() {
  job_base=$(printf '%s' "$certificate" | tr '*' '_' | cut -c 1-60)
  job_base=$job_base-$(printf '%s\n' "$server" "$certificate" "$destination" | cksum | cut -d ' ' -f 1)
  job_id=$job_base
  job_count=1
  while [ -f "$jobs_root/$job_id/job" ] && ! is_this_job "$job_id"; do
    job_count=$((job_count + 1))
    job_id=$job_base-$job_count
  done
}

is_this_job() {
  [ "$(job_value "$1" server)" = "$server" ] && [ "$(job_value "$1" certificate)" = "$certificate" ] &&
    [ "$(job_value "$1" destination)" = "$destination" ]
}

# job_value ID NAME: prints one value of any job.
job_value() {
  [ ! -f "$jobs_root/$1/job" ] || sed -n "s/^$2=//p" "$jobs_root/$1/job" 2>/dev/null
}

write_job() {
  cat <<EOF
format=2
state=$state_root
server=$server
certificate=$certificate
destination=$destination
schedule=$schedule
scheduler=$scheduler
reload=$reload
owner=$owner
group=$group
mode=$mode
verify=$verify
pin=$pin
ca=$ca
allow_http=$allow_http
EOF
  [ -z "$local_key" ] || cat <<EOF || return 1
local_key=$local_key
EOF
  [ -z "$client_cert" ] || cat <<EOF || return 1
client_cert=$client_cert
client_key=$client_key
EOF
  [ -z "$listener_user" ] || cat <<EOF || return 1
listener_user=$listener_user
EOF
  [ -z "$watch" ] || cat <<EOF || return 1
watch=$watch
EOF
  [ -z "$enrolled" ] || cat <<EOF || return 1
enrolled=$enrolled
EOF
  for job_line in $proxies; do
    cat <<EOF || return 1
proxy=$job_line
EOF
  done
  for job_line in $files; do
    cat <<EOF || return 1
file=$job_line
EOF
  done
  echo end=job
}

# Parses values; the file is never evaluated as code.
read_job() {
  [ -r "$jobs_root/$1/job" ] || fail 1 "job \"$1\" not found in $jobs_root"
  job_id=$1 files='' proxies='' watch='' enrolled='' local_key='' listener_user='' client_cert='' client_key='' job_format='' job_end='' server='' certificate='' destination='' schedule='' scheduler=''
  while IFS= read -r job_line <&4; do
    job_text=${job_line#*=}
    case ${job_line%%=*} in
      format) job_format=$job_text ;;
      end) job_end=$job_text ;;
      local_key) local_key=$job_text ;;
      listener_user) listener_user=$job_text ;;
      client_cert) client_cert=$job_text ;;
      client_key) client_key=$job_text ;;
      watch) watch=$job_text ;;
      enrolled) enrolled=$job_text ;;
      proxy) proxies=$proxies${proxies:+$newline}$job_text ;;
      state) state_root=$job_text ;;
      server) server=$job_text ;;
      certificate) certificate=$job_text ;;
      destination) destination=$job_text ;;
      schedule) schedule=$job_text ;;
      scheduler) scheduler=$job_text ;;
      reload) reload=$job_text ;;
      owner) owner=$job_text ;;
      group) group=$job_text ;;
      mode) mode=$job_text ;;
      verify) verify=$job_text ;;
      pin) pin=$job_text ;;
      ca) ca=$job_text ;;
      allow_http) allow_http=$job_text ;;
      file) files=$files${files:+$newline}$job_text ;;
      *) fail 1 "$jobs_root/$1/job has a line that this version does not support: ${job_line%%=*}" ;;
    esac
  done 4<"$jobs_root/$1/job"
  # Version 0.1.0 wrote neither format nor end.
  case $job_format-$job_end in
    2-job | -) ;;
    *) files='' ;;
  esac
  {
    [ -n "$server" ] && [ -n "$certificate" ] && [ -n "$destination" ] && [ -n "$schedule" ] && [ -n "$state_root" ] &&
      [ -n "$files" ]
  } || fail 1 "$jobs_root/$1/job is damaged; create the job again, or remove $jobs_root/$1 and its schedule"
}

# Saves the proxy settings of the shell that creates a job, because cron does not have these variables. They may contain a
# password, so they are stored in the job file, which is as private as the API key.
save_proxies() {
  proxies=''
  save_proxy http_proxy "${http_proxy:-}"
  save_proxy https_proxy "${https_proxy:-}"
  save_proxy all_proxy "${all_proxy:-}"
  save_proxy no_proxy "${no_proxy:-}"
  save_proxy HTTPS_PROXY "${HTTPS_PROXY:-}"
  save_proxy ALL_PROXY "${ALL_PROXY:-}"
  save_proxy NO_PROXY "${NO_PROXY:-}"
}

unset_proxies() {
  for proxy in $proxies; do
    unset "${proxy%%=*}"
  done
}

save_proxy() {
  [ -n "$2" ] || return 0
  refuse_control "$1" "$2"
  proxies=$proxies${proxies:+$newline}$1=$2
}

# Exports the proxy settings for the download programs. The reload command does not get them.
use_proxies() {
  for proxy in $proxies; do
    case $proxy in
      http_proxy=* | https_proxy=* | all_proxy=* | no_proxy=* | HTTPS_PROXY=* | ALL_PROXY=* | NO_PROXY=*) export "${proxy?}" ;;
    esac
  done
}

# Prints the ids of the jobs that match the options, one per line.
matching_jobs() {
  for candidate in $(set +f && cd "$jobs_root" 2>/dev/null && for found in *; do
    [ ! -f "$found/job" ] || printf '%s\n' "$found"
  done); do
    [ -z "$wanted_job" ] || [ "$candidate" = "$wanted_job" ] || continue
    [ -z "$server" ] || [ "$(job_value "$candidate" server)" = "$server" ] || continue
    [ -z "$certificate" ] || [ "$(job_value "$candidate" certificate)" = "$certificate" ] || continue
    [ -z "$destination" ] || [ "$(job_value "$candidate" destination)" = "$destination" ] || continue
    printf '%s\n' "$candidate"
  done
}

# Two jobs that write the same file would keep overwriting each other.
refuse_shared_files() {
  for other in $(wanted_job='' server='' certificate='' matching_jobs); do
    [ "$other" != "$job_id" ] || continue
    for own_line in $files; do
      job_value "$other" file | cut -d ' ' -f 2- | grep -F -x -e "${own_line#* }" >/dev/null || continue
      fail 1 "job $other already installs a file \"${own_line#* }\" in $destination; use another name, or remove that job with \
--uninstall $other"
    done
  done
}

