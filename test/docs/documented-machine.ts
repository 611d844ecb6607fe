/**
 * A machine for the page that sets one up: with namespaces for mounts, network and processes, so that the commands of
 * the page run as they stand, with its users, paths, ports and names. systemd and sudo are the only programs that are
 * replaced.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Skip } from '../harness/processes/missing-program.ts';
import { fromExecutable } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { otherVaultSettings, program, type Sandbox, shellIn } from './documented-commands.ts';

const namespaces = ['--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'];

/** A container may not allow them, even to root. */
export function needsNamespaces(): Skip {
  const { status } = spawnSync('unshare', [...namespaces, 'true']);
  return status === 0 ? {} : { skip: 'unshare cannot make namespaces here' };
}

/**
 * The machine, with the executable as `vault` in the folder where commands begin. Needs root. It ends with the test.
 */
export async function machine(t: Pick<TestContext, 'after'>): Promise<Sandbox> {
  const root = tempDir(t);
  const programs = join(root, 'programs');
  mkdirSync(programs);
  program(programs, 'sudo', asOtherUser);
  program(programs, 'systemctl', startsTheUnit);
  symlinkSync(fromExecutable[0], join(root, 'vault'));
  for (const folder of ['bin', 'lib', 'backups']) mkdirSync(join(root, folder), { mode: 0o755 });
  const setUp = [
    'cp -a /etc "$1/etc"',
    'echo "192.0.2.10 vault.example.com" >>"$1/etc/hosts"',
    'mount --bind "$1/etc" /etc',
    'mount --bind "$1/bin" /usr/local/bin',
    'mount --bind "$1/lib" /var/lib',
    'mount --bind "$1/backups" /var/backups',
    'ip link set lo up',
    'ip address add 192.0.2.10/32 dev lo',
    'echo ready',
    'exec sleep infinity',
  ];
  const holder = spawn('unshare', [...namespaces, 'sh', '-ec', setUp.join('\n'), 'sh', root], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(holder, 'close');
  t.after(async () => {
    holder.kill('SIGKILL');
    await ended;
  });
  const [ready] = (await Promise.race([once(holder.stdout, 'data'), ended])) as [unknown];
  assert.equal(String(ready), 'ready\n');
  const inside = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8').trim();
  // The folder is entered inside: another namespace's would have no path there.
  const enter = ['sh', '-c', 'cd "$0" && exec "$@"', root];
  const through = ['nsenter', `--target=${inside}`, '--mount', '--net', '--pid', ...enter];
  const environment = { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', TERM: 'dumb' };
  return shellIn(t, { root, programs, folders: [], through, environment });
}

const otherVault = Object.entries(otherVaultSettings)
  .map(([name, value]) => `${name}=${value}`)
  .join(' ');

/** As sudo does it: another user, with an environment of its own. */
const asOtherUser = `user=$2
shift 2
home=$(getent passwd "$user" | cut -d: -f6)
exec setpriv --reuid="$user" --regid="$user" --init-groups \\
  env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$home" USER="$user" LOGNAME="$user" TERM=dumb ${otherVault} "$@"`;

/**
 * What systemd does with the unit, as far as its files say: the directory, the user, the environment, the program. With
 * the variable MACHINE, it does so for a second machine, which has another state directory and port.
 */
const startsTheUnit = `unit=/etc/systemd/system/certificate-vault.service
[ "$1" != daemon-reload ] || exit 0
of() { sed -n "s/^$1=//p" "$unit"; }
pid=/var/lib/vault-test$MACHINE.pid
if [ -e "$pid" ]; then
  kill "$(cat "$pid")"
  # What has ended stays as a zombie: nothing in here collects it.
  while [ -e "/proc/$(cat "$pid")/exe" ]; do sleep 0.05; done
  rm "$pid"
fi
[ "$1" != stop ] || exit 0
state=/var/lib/$(of StateDirectory)$MACHINE
install -d -o "$(of User)" -g "$(of Group)" -m "$(of StateDirectoryMode)" "$state"
log=/var/lib/systemd$MACHINE.log
: >"$log"
setpriv --reuid="$(of User)" --regid="$(of Group)" --init-groups \\
  env -i PATH=/usr/bin:/bin STATE_DIRECTORY="$state" $(cat "$(of EnvironmentFile | sed 's/^-//')" 2>/dev/null) $(of ExecStart) \${MACHINE:+--listen 192.0.2.10:9443} >"$log" 2>&1 </dev/null &
echo $! >"$pid"
until grep -qs '^listening on ' "$log"; do
  [ -e "/proc/$(cat "$pid")/exe" ] || { cat "$log"; exit 1; }
  sleep 0.05
done
sh -c "$(of ExecStartPost | sed "s/^-+.bin.sh -c '//; s/'$//")"`;
