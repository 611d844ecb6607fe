/** The unit file: systemd takes it, rates it well, and what it forbids is nothing that the vault needs. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { constants, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const [program] = fromExecutable;
const analyze = needs('systemd-analyze');

const hint = `vault: the systemd unit cannot access ${program}\n  Copy the executable to /usr/local/bin/vault and run the command from there.\n`;

/** The unit as a file with its name, with local changes. */
async function unitFile(t: TestContext, change = (unit: string) => unit): Promise<string> {
  const { code, stdout } = await vault(['systemd-unit']);
  assert.equal(code, 0);
  const path = join(tempDir(t), 'certificate-vault.service');
  writeFileSync(path, change(stdout));
  return path;
}

test('the unit runs the executable that printed it and contains the expected settings', async () => {
  const { code, stdout, stderr } = await vault(['systemd-unit']);
  assert.equal(code, 0);
  assert.ok(stdout.includes(`\nExecStart=${program} serve\n`), stdout);
  for (const line of ['Type=notify', 'NotifyAccess=all', 'StateDirectory=vault', 'ProtectSystem=strict']) {
    assert.ok(stdout.includes(`\n${line}\n`), line);
  }
  assert.match(stdout, /^EnvironmentFile=-\/etc\/certificate-vault\.env$/m);
  assert.match(stdout, /^ExecStartPost=-\+\/bin\/sh -c '.* CERTVAULT_NO_CREATE=true/m);
  assert.match(stdout, /^#LoadCredential=master\.key:/m);
  assert.match(stdout, /^#LoadCredentialEncrypted=master\.key:/m);
  assert.ok(!stdout.includes('{{'));
  assert.equal(stderr, /^\/(home|root|tmp)\//.test(program) ? hint : '');
});

test('an executable in a directory that services cannot access is reported with a hint', async (t) => {
  const path = join(tempDir(t), 'vault');
  copyFileSync(program, path, constants.COPYFILE_FICLONE);
  const { code, stdout, stderr } = await vault(['systemd-unit'], { program: [path] });
  assert.equal(code, 0);
  assert.ok(stdout.includes(`\nExecStart=${path} serve\n`));
  assert.equal(stderr, hint.replace(program, path));
});

test('an executable path that systemd cannot run is rejected', async (t) => {
  for (const name of ["it's", 'a"b', 'a\\b', 'a\nb']) {
    const path = join(tempDir(t), name);
    copyFileSync(program, path, constants.COPYFILE_FICLONE);
    const { code, stdout, stderr } = await vault(['systemd-unit'], { program: [path] });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^vault: systemd cannot run an executable whose path .*\n {2}Copy the executable to /,
    );
  }
});

test(
  'systemd-analyze accepts the unit, also with special characters in the executable path',
  analyze,
  async (t) => {
    assert.equal(verified(await unitFile(t)), '');
    const odd = join(tempDir(t), 'a %i $HOME $$; #', 'vault');
    mkdirSync(dirname(odd));
    copyFileSync(program, odd, constants.COPYFILE_FICLONE);
    const { stdout } = await vault(['systemd-unit'], { program: [odd] });
    const path = join(tempDir(t), 'certificate-vault.service');
    writeFileSync(path, stdout);
    assert.equal(verified(path), '');
    writeFileSync(path, stdout.replace('/vault"', '/vaul"'));
    assert.match(verified(path), /is not executable|No such file/);
  },
);

test('systemd-analyze rates the unit at 1.5 or better, and 1.6 with ports below 1024', analyze, async (t) => {
  assert.ok(exposure(await unitFile(t)) <= 1.5);
  const lowPorts = await unitFile(t, (unit) =>
    unit
      .replace(/^(CapabilityBoundingSet=|PrivateUsers=yes)$/gm, '')
      .replace(/^#(AmbientCapabilities|CapabilityBoundingSet|PrivateUsers)=/gm, '$1='),
  );
  assert.equal(verified(lowPorts), '');
  assert.ok(exposure(lowPorts) <= 1.6);
  const bare = await unitFile(t, (unit) => unit.replace(/^(Protect|Private|Restrict|SystemCall).*$/gm, ''));
  assert.ok(exposure(bare) > 3, 'the rating means nothing');
});

test(
  'serve runs and starts programs with a read-only file system, hidden processes and no capabilities',
  mayJail(),
  (t) => {
    const dir = tempDir(t);
    const data = join(dir, 'data');
    mkdirSync(data, { mode: 0o700 });
    // What lies in /tmp comes along under /mnt, as /tmp is the service's own.
    const script = `
    set -e
    mount --make-rprivate /
    mount -t proc -o subset=pid,hidepid=invisible proc /proc
    mount -t tmpfs tmpfs /mnt
    mkdir /mnt/data
    touch /mnt/vault
    mount --bind "$1" /mnt/data
    mount --bind "$2" /mnt/vault
    chown 54321:54321 /mnt/data
    mount -t tmpfs -o mode=1777 tmpfs /tmp
    mount -o remount,bind,ro /
    cd /
    as_service="setpriv --reuid=54321 --regid=54321 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all"
    $as_service /mnt/vault certificate create --name a --domain a.test --data-dir /mnt/data
    ! $as_service touch /etc/x 2>/dev/null
    ! test -e /proc/meminfo
    env NOTIFY_SOCKET=/mnt/data/none $as_service /mnt/vault serve --data-dir /mnt/data --listen 127.0.0.1:0 &
    server=$!
    until grep -q "listening on" /mnt/data/out; do kill -0 $server; done
    kill $server
    wait $server
    cat /mnt/data/out`;
    const run = spawnSync(
      'unshare',
      [
        '--mount',
        '--pid',
        '--fork',
        'sh',
        '-c',
        script.replace('&\n', '>/mnt/data/out 2>&1 &\n'),
        'sh',
        data,
        program,
      ],
      { encoding: 'utf8', timeout: 60_000 },
    );
    assert.equal(run.status, 0, `${run.stdout}${run.stderr}`);
    assert.match(run.stdout, /"msg":"stopped"/);
    // It was started, and found no socket.
    assert.match(run.stdout, /systemd-notify exited with 1: .*No such file/);
  },
);

function verified(path: string): string {
  const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', path], { encoding: 'utf8' });
  // It also verifies other units of the machine.
  return `${stdout}${stderr}`
    .split('\n')
    .filter((line) => line.includes('certificate-vault') || line.includes(path))
    .join('\n');
}

function exposure(path: string): number {
  const args = ['security', '--offline=true', '--no-pager', path];
  const report = execFileSync('systemd-analyze', args, { encoding: 'utf8' });
  const rating = /Overall exposure level for \S+: ([\d.]+)/.exec(report)?.[1];
  assert.ok(rating !== undefined, report);
  return Number(rating);
}

function mayJail(): { readonly skip?: string } {
  const args = ['--mount', '--pid', '--fork', 'mount', '-t', 'proc', '-o', 'subset=pid', 'proc', '/proc'];
  return spawnSync('unshare', args).status === 0
    ? { ...needs('setpriv'), ...needs('systemd-notify') }
    : { skip: 'only root may mount /proc' };
}
