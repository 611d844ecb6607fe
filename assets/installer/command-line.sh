# ---------------------------------------------------------------------------------------------------------------------
# The command line

# Options are `--name value` or `--name=value`.
read_options() {
  action=install wanted_job='' wanted_watch='' key_file='' enroll_file='' keystore_file='' ca_file='' dry_run=no given_server='' local_key_type=''
  while [ $# -gt 0 ]; do
    option=${1%%=*}
    case $option in
      --list | --set-key | --help | --dry-run | --allow-http | --allow-not-yet-valid | --local-key | --watch)
        [ "$option" = "$1" ] || usage_error "$option takes no value"
        case $option in
          --list) action=list ;;
          --set-key) action=set-key ;;
          --help) action=help ;;
          --dry-run) dry_run=yes ;;
          --allow-http) allow_http=yes ;;
          --local-key) local_key=ec256 ;;
          --watch) wanted_watch=yes ;;
          --allow-not-yet-valid)
            # The job's own copy of the script may be older, and then ignores the variable.
            allow_early=yes
            export CERTIFICATE_VAULT_ALLOW_NOT_YET_VALID=yes
            ;;
        esac
        shift
        continue
        ;;
      --status | --run | --uninstall)
        action=${option#--}
        case $1 in *=*) wanted_job=${1#*=} ;; esac
        shift
        # A job id ends with a digit, and may begin with a dash, as certificate names may.
        case ${1:-} in -*[!0-9] | '') ;; *) wanted_job=$1 && shift ;; esac
        continue
        ;;
      --server | --certificate | --file | --destination | --reload-command | --schedule) ;;
      --listener-user | --key-file | --enroll | --keystore-password-file | --ca-file | --pin | --client-cert | --client-key | --owner | --group | --mode | --verify | --local-key-type) ;;
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
    refuse_control "$option" "$value"
    case $option in
      --server) given_server=$value ;;
      --certificate) check_certificate "$value" ;;
      --file) add_file "$value" ;;
      --destination) check_destination "$value" ;;
      --reload-command) reload=$value ;;
      --schedule) schedule=$value ;;
      --key-file) key_file=$value ;;
      --enroll) enroll_file=$value ;;
      --keystore-password-file) keystore_file=$value ;;
      --ca-file) ca_file=$value ;;
      --pin) add_pins "$value" ;;
      --client-cert) client_cert=$(absolute_path "$value") ;;
      --client-key) client_key=$(absolute_path "$value") ;;
      --owner) owner=$value ;;
      --group) group=$value ;;
      --mode) mode=$value ;;
      --listener-user) listener_user=$value ;;
      --verify) verify=$value ;;
      --local-key-type) local_key_type=$value ;;
    esac
  done
  [ "$action" != install ] || [ -n "$given_server" ] || given_server=$default_server
  # Selecting a job sends nothing, so http is no risk.
  [ "$action" = install ] || allow_http=yes
  [ -z "$given_server" ] || check_server "$given_server"
}

main() {
  stdin_key='' last_argument=''
  for argument in "$@"; do
    case $last_argument=$argument in
      --key-file=- | *=--key-file=- | --enroll=- | *=--enroll=-) IFS= read -r stdin_key || : ;;
    esac
    last_argument=$argument
  done
  # If the script comes through a pipe, standard input is the script.
  exec </dev/null
  set -u
  initialize
  read_options "$@"
  if [ "$action" = help ]; then
    usage
    exit 0
  fi
  find_paths
  # The schedule runs the job's own copy, so the jobs directory is its parent.
  if [ "$action" = run ] && [ -n "$wanted_job" ] && [ -f "${0%/*}/job" ] && [ "${0%/*}" != "$0" ]; then
    jobs_root=$(cd "${0%/*}/.." && pwd)
  fi
  case $action in
    install) install_job ;;
    list) list_jobs ;;
    status) show_status ;;
    run) run_jobs ;;
    set-key) set_key ;;
    uninstall) uninstall_jobs ;;
  esac
  exit $?
}

