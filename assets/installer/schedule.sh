# ---------------------------------------------------------------------------------------------------------------------
# Schedules

# cron_to_calendar SCHEDULE [LOCAL UTC LAST [REPORTED]]: converts a cron schedule to systemd.time(7), one OnCalendar value per line.
# Fails and prints the reason if the schedule is not valid, so it also validates schedules for cron. With LOCAL UTC LAST
# (the current local time, the current time in UTC, and the last run in UTC, such as 2026-11-22T17:03:00) it prints
# `overdue` instead, if the last run was more than an hour before the second to last scheduled time. The hour allows for
# a change to daylight saving time. With an empty LAST it prints the next scheduled time in UTC, and `due` if it is time for
# a report: the last one (REPORTED, in UTC) was 20 hours ago, or the next run is more than a day ahead.
cron_to_calendar() {
  awk -v local_now="${2:-}" -v utc_now="${3:-}" -v last_run="${4:-}" -v reported="${5:-}" '
    function refuse(why) { print why; failed = 1; exit 1 }
    function number(text, names,   i) {
      if (text ~ /^[0-9]+$/ && length(text) <= 2) return text + 0
      i = names == "" ? 0 : index(names, tolower(text))
      if (length(text) == 3 && i % 3 == 1 && text ~ /^[A-Za-z]+$/) return (i - 1) / 3 + (names ~ /^jan/)
      refuse("\"" text "\" is not valid in this field")
    }
    # Fills set[field, value]; full[field] is true if the set has all values.
    function expand(field, text, low, high, names,   parts, count, i, piece, slash, step, dash, from, to, value) {
      if (text ~ /^,/ || text ~ /,$/ || text ~ /,,/) refuse("\"" text "\" has an empty item")
      count = split(text, parts, ",")
      for (i = 1; i <= count; i++) {
        piece = parts[i]; step = 1; slash = index(piece, "/")
        if (slash) {
          step = substr(piece, slash + 1); piece = substr(piece, 1, slash - 1)
          if (step !~ /^[0-9]+$/ || step + 0 < 1) refuse("\"" parts[i] "\" has no valid step")
          step += 0
        }
        dash = index(piece, "-")
        if (piece == "*") { from = low; to = field == 5 ? 6 : high }
        else if (dash) { from = number(substr(piece, 1, dash - 1), names); to = number(substr(piece, dash + 1), names) }
        else {
          if (slash) refuse("\"" parts[i] "\" has a step without a range")
          from = to = number(piece, names)
        }
        if (from < low || to > high) refuse("\"" parts[i] "\" is not between " low " and " high)
        if (from > to) refuse("\"" parts[i] "\" is a reversed range")
        for (value = from; value <= to; value += step) set[field, field == 5 ? value % 7 : value] = 1
      }
      full[field] = 1
      for (value = low; value <= (field == 5 ? 6 : high); value++) if (!((field, value) in set)) full[field] = 0
    }
    function list(field, low, high,   text, value) {
      if (full[field]) return "*"
      for (value = low; value <= high; value++) if ((field, value) in set)
        text = text (text == "" ? "" : ",") sprintf("%02d", value)
      return text
    }
    function weekdays(   text, value, day) {
      if (full[5]) return ""
      split("Sun Mon Tue Wed Thu Fri Sat", day, " ")
      for (value = 0; value <= 6; value++) if ((5, value) in set) text = text (text == "" ? "" : ",") day[value + 1]
      return text " "
    }
    # Whether any month of the set has a day of the set.
    function exists(   month, day, days) {
      split("31 29 31 30 31 30 31 31 30 31 30 31", days, " ")
      for (month = 1; month <= 12; month++) if ((4, month) in set)
        for (day = 1; day <= days[month]; day++) if ((3, day) in set) return 1
      return 0
    }
    # Converts dates to days since 1970 and back. Years begin in March here, so that February 29 is the last day.
    function days_of(y, m, d) {
      if (m < 3) { y--; m += 12 }
      return 365 * y + int(y / 4) - int(y / 100) + int(y / 400) + int((153 * (m - 3) + 2) / 5) + d - 719469
    }
    function date_of(days,   day, year) {
      day = (days + 719468) % 146097
      year = int((day - int(day / 1460) + int(day / 36524) - int(day / 146096)) / 365)
      day -= 365 * year + int(year / 4) - int(year / 100)
      month_of = int((5 * day + 2) / 153); day_of = day - int((153 * month_of + 2) / 5) + 1
      month_of += month_of < 10 ? 3 : -9
      year_of = year + 400 * int((days + 719468) / 146097) + (month_of < 3)
    }
    function seconds_of(time,   part) {
      if (time !~ /^[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+Z?$/) return 0
      split(time, part, /[-T:Z]/)
      return days_of(part[1], part[2], part[3]) * 86400 + part[4] * 3600 + part[5] * 60 + part[6]
    }
    # The second to last scheduled time, in seconds of the local clock.
    function last_but_one(now, either,   day, left, minute, found) {
      for (day = int(now / 86400); left++ < 6000; day--) {
        if (!is_day(day, either)) continue
        for (minute = 1439; minute >= 0; minute--)
          if ((2, int(minute / 60)) in set && (1, minute % 60) in set && day * 86400 + minute * 60 <= now && ++found == 2)
            return day * 86400 + minute * 60
      }
      return 0
    }
    function is_day(day, either,   hit) {
      date_of(day)
      hit = ((3, day_of) in set) + ((5, (day + 4) % 7) in set)
      return (4, month_of) in set && hit >= (either ? 1 : 2)
    }
    # The next scheduled time, in seconds of the local clock.
    function next_time(now, either,   day, left, minute) {
      for (day = int(now / 86400); left++ < 6000; day++) if (is_day(day, either))
        for (minute = 0; minute < 1440; minute++)
          if ((2, int(minute / 60)) in set && (1, minute % 60) in set && day * 86400 + minute * 60 > now)
            return day * 86400 + minute * 60
      return 0
    }
    function stamp(time,   day) {
      day = int(time / 86400); time -= day * 86400
      date_of(day)
      return sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", year_of, month_of, day_of, int(time / 3600), int(time / 60) % 60, time % 60)
    }
    NR > 1 { refuse("more than one line") }
    {
      if ($0 ~ /^@/) {
        macro["@yearly"] = macro["@annually"] = "0 0 1 1 *"; macro["@monthly"] = "0 0 1 * *"
        macro["@weekly"] = "0 0 * * 0"; macro["@daily"] = macro["@midnight"] = "0 0 * * *"
        macro["@hourly"] = "0 * * * *"
        if (!($1 in macro) || NF != 1) refuse("\"" $0 "\" is not supported")
        $0 = macro[$1]
      }
      if (NF != 5) refuse("expected 5 fields, found " NF)
      expand(1, $1, 0, 59, ""); expand(2, $2, 0, 23, ""); expand(3, $3, 1, 31, "")
      expand(4, $4, 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"); expand(5, $5, 0, 7, "sunmontuewedthufrisat")
      time = list(2, 0, 23) ":" list(1, 0, 59) ":00"
      # In cron, a job with both day fields runs if either matches; a field that begins with a star does not count.
      either = $3 !~ /^\*/ && $5 !~ /^\*/
      if (!either && !exists()) refuse("no month has this day")
      if (local_now != "") {
        local = seconds_of(local_now)
        if (last_run == "") {
          utc = seconds_of(utc_now)
          next_run = next_time(local, either) - local + utc
          age = utc - seconds_of(reported)
          print stamp(next_run) " " (age < 0 || age >= 72000 || next_run - utc > 90000 ? "due" : "sent")
          exit
        }
        print (seconds_of(last_run) + local - seconds_of(utc_now) < last_but_one(local, either) - 3600 ? "overdue" : "in time")
        exit
      }
      if (!either) print weekdays() "*-" list(4, 1, 12) "-" list(3, 1, 31) " " time
      else {
        if (exists()) print "*-" list(4, 1, 12) "-" list(3, 1, 31) " " time
        print weekdays() "*-" list(4, 1, 12) "-* " time
      }
    }
    END { if (!failed && NR == 0) { print "empty"; exit 1 } }
  ' <<EOF
$1
EOF
}

# Picks a random daily time, so that machines that are set up at the same time do not all download at the same time.
random_schedule() {
  random=$(random_number)
  printf '%s %s * * *\n' "$((random % 1440 % 60))" "$((random % 1440 / 60))"
}

random_number() {
  random=$(od -A n -N 2 -t u2 /dev/urandom 2>/dev/null | tr -d ' \n')
  [ -n "$random" ] || random=$(printf '%s %s %s' "$(uname -n)" "$(date)" "$$" | cksum | cut -c 1-4)
  echo "$random"
}

# Sets `scheduler` to cron or systemd before anything is changed. Only systemd can also keep a service running.
choose_scheduler() {
  if [ -n "$watch" ] && systemctl "$systemctl_scope" show --property=Version >/dev/null 2>&1 </dev/null; then
    scheduler=systemd
  elif command -v crontab >/dev/null 2>&1; then
    scheduler=cron
    read_crontab >/dev/null || fail 1 "crontab -l failed, so the crontab cannot be changed safely: $crontab_error"
  elif systemctl "$systemctl_scope" show --property=Version >/dev/null 2>&1 </dev/null; then
    scheduler=systemd
  else
    fail 1 "cannot schedule downloads: neither crontab nor a running systemd found; install cron"
  fi
}

# Prints the current crontab, which is empty for a user without one. Any other error is a failure: treating it as an empty
# crontab would erase the real one. Sets crontab_error.
read_crontab() {
  crontab_error=''
  crontab -l 2>"$scratch/crontab.error" </dev/null && return 0
  crontab_error=$(cat "$scratch/crontab.error")
  case $crontab_error in
    *"no crontab for"* | *"can't open"*"No such file or directory"*) return 0 ;;
    *) return 1 ;;
  esac
}

# The checksum of the installed crontab, without the header that some systems add. Compared with a file, it detects a copy
# that a full disk truncated, which the exit code of crontab does not report.
installed_crontab_sum() {
  crontab -l 2>/dev/null </dev/null | without_header | cksum
}

without_header() {
  sed -e '/^# DO NOT EDIT THIS FILE/d' -e '/^# (.* installed on /d' -e '/^# (Cron version /d'
}

# new_crontab OLD ID [LINE]: prints the crontab without the job's old line and with its new one.
new_crontab() {
  awk -v tag=" # certificate-vault:$2" 'substr($0, length($0) - length(tag) + 1) != tag' "$1" &&
    { [ -z "${3:-}" ] || printf '%s # certificate-vault:%s\n' "$3" "$2"; }
}

# The expected checksum of the new crontab, computed by another program and without the disk.
new_crontab_sum() {
  {
    {
      cat "$1"
      [ -z "$(tail -c 1 "$1")" ] || echo
    } | sed "/ # certificate-vault:$(printf '%s' "$2" | sed 's/[.]/\\./g')\$/d"
    [ -z "${3:-}" ] || printf '%s # certificate-vault:%s\n' "$3" "$2"
  } | cksum
}

# change_crontab ID [LINE]: replaces or removes the job's line, which it finds by its whole last word, because another
# job's id may begin or end like this one. Everything else in the crontab belongs to the user: the new crontab is checked
# before it is installed and again afterwards, and the old one is restored if the result differs.
change_crontab() (
  # This subshell must not release the locks of the job.
  # shellcheck disable=SC2030 # on purpose
  held_lock='' install_lock=''
  trap release_lock 0
  acquire_lock "$state_root/crontab.lock" 60 || fail "$exit_busy" "another installer has held the crontab lock for a minute"
  old=$scratch/crontab.old new=$scratch/crontab.new
  read_crontab >"$old" ||
    fail 1 "crontab -l failed, so the crontab cannot be changed safely: $crontab_error"
  [ "$(without_header <"$old" | cksum)" = "$(installed_crontab_sum)" ] ||
    fail "$exit_write" "cannot copy the crontab to $scratch; is that disk full?"
  new_crontab "$old" "$@" >"$new" || fail "$exit_write" "cannot write the new crontab to $scratch; is that disk full?"
  [ "$(cksum <"$new")" = "$(new_crontab_sum "$old" "$@")" ] ||
    fail "$exit_write" "the new crontab in $scratch is incomplete, so the crontab was not changed; is that disk full?"
  cmp -s "$old" "$new" && exit 0
  crontab_status=0
  crontab "$new" </dev/null || crontab_status=$?
  [ "$(installed_crontab_sum)" != "$(without_header <"$new" | cksum)" ] || exit 0
  [ "$(installed_crontab_sum)" = "$(without_header <"$old" | cksum)" ] || crontab "$old" </dev/null || :
  [ "$(installed_crontab_sum)" != "$(without_header <"$old" | cksum)" ] ||
    fail 1 "crontab rejected the new crontab (exit code $crontab_status); the old one is unchanged"
  cp "$old" "$state_root/crontab.before" && crontab_kept="; a copy is in $state_root/crontab.before"
  fail 1 "crontab stored an incomplete crontab, and the old one could not be restored${crontab_kept:-}"
)

cron_line() {
  printf "%s /bin/sh '%s' --run %s\n" "$schedule" "$jobs_root/$job_id/install.sh" "$job_id"
}

unit_service() {
  cat <<EOF
[Unit]
Description=Certificate download from the vault (job $job_id)
EOF
  # The systemd user manager has no such target.
  [ "$systemctl_scope" = --user ] || printf 'Wants=network-online.target\nAfter=network-online.target\n'
  cat <<EOF

[Service]
Type=oneshot
ExecStart=/bin/sh "$jobs_root/$job_id/install.sh" --run $job_id
TimeoutStartSec=15min
EOF
}

unit_timer() {
  cat <<EOF
[Unit]
Description=Certificate download from the vault (job $job_id): $schedule

[Timer]
EOF
  cron_to_calendar "$schedule" | sed 's/^/OnCalendar=/'
  # Persistent: a machine that was off at the scheduled time catches up. AccuracySec: systemd must not shift the time.
  cat <<EOF
Persistent=true
AccuracySec=1s

[Install]
WantedBy=timers.target
EOF
}

install_schedule() {
  if [ "$scheduler" = cron ]; then
    change_crontab "$job_id" "$(cron_line)" || return 1
    remove_units || warn "could not remove the units of systemd ($unit.timer) of an earlier installation"
    return 0
  fi
  install_units || return 1
  ! command -v crontab >/dev/null 2>&1 || change_crontab "$job_id" ||
    warn "could not remove the line of an earlier installation from the crontab, so it also runs the job"
  [ "$systemctl_scope" = --system ] ||
    info "the timer runs only while you are signed in; to run it always, use \"loginctl enable-linger\""
}

# The units of a job have the names $unit$part.
unit_parts() {
  printf '%s\n' .service .timer ${watch:+-watch.service}
}

# Writes the units in their final directory, so that they get the SELinux label of that directory. Restores the old units
# if systemd rejects the new ones.
install_units() {
  unit=certificate-vault-$job_id
  (umask 022 && mkdir -p "$unit_directory") || return 1
  for part in $(watch=yes unit_parts); do
    rm -f "$unit_directory/$unit$part.old"
    [ ! -e "$unit_directory/$unit$part" ] || cp -p "$unit_directory/$unit$part" "$unit_directory/$unit$part.old" || return 1
  done
  if write_units && start_units; then
    [ -n "$watch" ] || disable_unit "$unit-watch.service" || warn "systemd failed to stop the service $unit-watch.service"
    for part in $(watch=yes unit_parts); do
      rm -f "$unit_directory/$unit$part.old"
    done
    return 0
  fi
  if [ -e "$unit_directory/$unit.timer.old" ]; then
    restore_units
  else
    remove_units
  fi
  return 1
}

write_units() (
  umask 022
  for part in $(unit_parts); do
    if ! write_unit "$part" >"$unit_directory/$unit$part.new" ||
      ! mv -f "$unit_directory/$unit$part.new" "$unit_directory/$unit$part"; then
      rm -f "$unit_directory/$unit$part.new"
      exit 1
    fi
  done
)

write_unit() {
  case $1 in
    .service) unit_service ;;
    .timer) unit_timer ;;
    -watch.service) unit_watch ;;
  esac
}

restore_units() {
  new_watch=$watch watch=''
  for part in $(watch=yes unit_parts); do
    [ -e "$unit_directory/$unit$part.old" ] || continue
    mv -f "$unit_directory/$unit$part.old" "$unit_directory/$unit$part"
    [ "$part" != -watch.service ] || watch=yes
  done
  [ -n "$watch" ] || disable_unit "$unit-watch.service"
  start_units >/dev/null 2>&1 || warn "restored the old units in $unit_directory, but systemd failed to start them"
  watch=$new_watch
}

start_units() {
  systemctl "$systemctl_scope" daemon-reload </dev/null >&2 || return 1
  for part in $(unit_parts); do
    [ "$part" != .service ] || continue
    systemctl "$systemctl_scope" enable "$unit$part" </dev/null >&2 &&
      systemctl "$systemctl_scope" restart "$unit$part" </dev/null >&2 || return 1
  done
}

# disable_unit NAME: stops and removes a unit. Fails if systemd runs and cannot stop it.
disable_unit() {
  [ -e "$unit_directory/$1" ] || return 0
  systemctl "$systemctl_scope" disable --now "$1" </dev/null >/dev/null 2>&1 ||
    ! systemctl "$systemctl_scope" show --property=Version >/dev/null 2>&1 </dev/null || return 1
  rm -f "$unit_directory/$1"
}

remove_units() {
  unit=certificate-vault-$job_id
  [ -e "$unit_directory/$unit.timer" ] || [ -e "$unit_directory/$unit-watch.service" ] || return 0
  disable_unit "$unit-watch.service" && disable_unit "$unit.timer" && rm -f "$unit_directory/$unit.service" || return 1
  systemctl "$systemctl_scope" daemon-reload </dev/null >/dev/null 2>&1
  return 0
}

remove_schedule() {
  if command -v crontab >/dev/null 2>&1; then
    change_crontab "$job_id" || return 1
  elif [ "$scheduler" = cron ]; then
    message err "cannot remove the job's line without the crontab program; install cron again"
    return 1
  fi
  remove_units
}

# Whether the schedule of the job is installed.
is_scheduled() {
  unit=certificate-vault-$job_id
  if [ "$scheduler" = cron ]; then
    # shellcheck disable=SC2312
    crontab -l 2>/dev/null </dev/null | grep -F -x -e "$(cron_line) # certificate-vault:$job_id" >/dev/null
  else
    for part in $(unit_parts); do
      [ -s "$unit_directory/$unit$part" ] || return 1
      [ "$part" != .service ] || continue
      systemctl "$systemctl_scope" is-enabled "$unit$part" >/dev/null 2>&1 </dev/null || return 1
    done
    systemctl "$systemctl_scope" is-active "$unit.timer" >/dev/null 2>&1 </dev/null
  fi
}

