# shellcheck disable=SC2317,SC2016 # shellcheck does not see what traps and get_"$tool" call, nor that bounded runs awk
# Certificate Vault: the client. It creates, replaces, lists and removes scheduled downloads of certificates and keys, and
# the schedule runs it. For usage, run `sh install.sh --help`.
#
# It runs as root on other people's machines. Therefore nothing runs before the last line is read, input is never
# evaluated as code, the API key is never an argument of a program, and a destination changes only from one complete set
# of files to another. Root writes only where no other user can redirect it, and switches to the owner of the files if
# the directory belongs to that user. Plain POSIX: no `local`, no arrays, no GNU-only flags. A list is a string with one
# entry per line (values contain no line breaks). IFS is a line break everywhere, so `for line in $list` reads a list
# without a temporary file, which a full disk could truncate.

# The vault inserts its own address here when it serves this script.
default_server=''
# And its version here.
client_version=''

default_file_mode=0644
private_key_mode=0600

# Exit codes, besides 0 for success, 1 for failure and 2 for wrong usage.
exit_fetch=10
exit_check=11
exit_write=12
exit_reload=13
exit_verify=14
exit_busy=75

usage() {
  cat <<'EOF'
Keep the files of a certificate on this machine up to date with the vault.

Create or replace a job:
  SERVICE_API_KEY=... sh install.sh --server URL --certificate NAME --file ARTIFACT[=OUTPUT]... --destination DIR
    --server URL             address of the vault; https, or http on this machine only
    --certificate NAME       name of the certificate in the vault
    --file ARTIFACT[=OUTPUT] file to download: certificate.crt, chain.crt, fullchain.crt (or fullchain.pem), private.key
                             (or private-key.pem), combined.pem (private key, then full chain), certificate.der or
                             keystore.p12 (PKCS#12); OUTPUT is its name in DIR. Repeatable.
    --destination DIR        directory for the files
    --reload-command CMD     command to run when files change; retried at each run until it succeeds
    --schedule CRON          five cron fields, or @daily and similar; default: once a day at a random time
    --key-file FILE          file with the API key, instead of SERVICE_API_KEY; "-" for standard input
    --enroll FILE            file with an enrollment token, which is exchanged for an API key of this machine; "-" for
                             standard input. The variable ENROLLMENT_TOKEN has the same effect
    --watch                  also keep a request open and run the job as soon as there is a new version: a service of
                             systemd, or a command for another supervisor
    --keystore-password-file FILE   file with the password of keystore.p12 in its first line
    --local-key              generate the private key on this machine and keep it here: the vault gets certificate
                             signing requests only; the API key needs the scopes certificates:read, certificates:sign
    --local-key-type TYPE    ec256 (default), ec384, rsa2048, rsa3072 or rsa4096
    --ca-file FILE           root certificate that signed the vault's own certificate
    --pin sha256//BASE64     public key of the vault's own certificate; without --ca-file, the only thing trusted.
                             Repeatable, for example with the current and the next key.
    --client-cert FILE, --client-key FILE   certificate and private key that an API key is bound to, as PEM; the job
                             presents these files at each run, so they may be its own
    --owner USER, --group GROUP   owner and group of the files
    --mode MODE              mode of the files (default 0644); files with a private key always get 0600
    --verify HOST:PORT       after a reload, check that this server presents the new certificate
    --listener-user USER     over http on this machine: the user whose process listens on the port of --server, if it is
                             not root, the user vault or the user of the job
    --allow-http             send the API key and download private keys unencrypted, to any listener
    --allow-not-yet-valid    install a certificate that is not valid yet, where the clock is wrong; also with --run
    --dry-run                print what would happen, without doing it
Manage jobs (select them by JOB, or by --server, --certificate and --destination):
    --list                   list jobs, one per line
    --status [JOB]           show the state of jobs; fails if a job has a problem
    --run [JOB]              run jobs now; with --watch, run one job whenever there is a new version, until stopped
    --set-key                replace the API key of all selected jobs, or of none if the vault does not accept it for
                             each file of each job
    --uninstall [JOB]        remove a job, its schedule and its API key; the files in DIR stay
    --help                   show this help
Exit codes: 0 success, 1 failure, 2 wrong usage, 10 download, 11 check, 12 write, 13 reload, 14 verify, 75 another run
in progress.
EOF
}

