/** The installer rules of the interface specification, by number, and bugs of other installers (field-notes.md). */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assertPair, leftovers, machine, modeOf, type Tool } from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { inTurnOfPlaces, inTurnOfShells } from './places.ts';

/** The program that each tool runs to download. */
const carriers = {
  curl: ['curl'],
  wget: ['wget'],
  nc: ['nc', 'busybox', 'nc'],
  'nc.openbsd': ['nc', 'nc.openbsd'],
  openssl: ['openssl'],
} as const satisfies Record<Tool, readonly [string, ...string[]]>;

inTurnOfPlaces(
  'rule 1: the API key is stored in a file of mode 0600 in a directory of mode 0700, and nowhere else',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    // The arguments of every program are visible to all users.
    const [download, ...first] = carriers[place.tool];
    for (const program of [download, 'cat', 'awk', 'sed', 'grep', 'tr', 'mv', 'printf', 'sh', 'openssl']) {
      const real = program === download && first.length > 0 ? first.join(' ') : program;
      client.fake(
        program,
        `echo "$0 $*" >>"${client.home}/arguments"; PATH=${process.env.PATH} exec ${real} "$@"`,
      );
    }
    const installed = await vault.install(client);
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(installed.stderr.includes(vault.key), false);
    const how = place.tool === 'openssl' ? 'openssl s_client ' : `${download} `;
    assert(readFileSync(join(client.home, 'arguments'), 'utf8').includes(`/bin/${how}`));
    const [job = ''] = client.jobs();
    const directory = join(client.home, 'vault', 'jobs', job);
    assert.equal(modeOf(directory), 0o700);
    assert.equal(modeOf(join(directory, 'api-key')), 0o600);
    const holders = readdirSync(client.home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => readFileSync(path, 'utf8').includes(vault.key));
    assert.deepEqual(holders, [join(directory, 'api-key')]);
  },
);

inTurnOfPlaces(
  'rule 2: downloads go to a temporary directory beside the files, which is removed afterwards',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    const server = await vault.relay();
    const staged: string[] = [];
    const inPlace: string[] = [];
    server.answer = (path) => {
      if (path.includes('private.key')) {
        for (const name of leftovers(client))
          staged.push(`${name}/${readdirSync(join(client.destination, name))}`);
        inPlace.push(client.file('tls.crt') + client.file('tls.key'));
      }
      return undefined;
    };
    assert.equal((await vault.install(client, ['--server', server.url])).code, 0);
    const first = client.file('tls.crt') + client.file('tls.key');
    await vault.renew();
    assert.equal((await client.run(['--run'])).code, 0);
    const staging = `.vault-staging-${client.jobs()[0]}/tls.crt,tls.key`;
    assert.deepEqual(staged, [staging, staging]);
    assert.deepEqual(inPlace, ['', first]);
    assert.deepEqual(leftovers(client), []);
  },
);

inTurnOfPlaces(
  'rules 3 and 4: the schedule is installed, and the first download runs immediately',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    writeFileSync(join(client.home, 'crontab'), 'MAILTO=root\n1 2 * * * true');
    assert.equal((await vault.install(client, ['--schedule', '17 3 * * 1-5'])).code, 0);
    assertPair(client);
    const [job = ''] = client.jobs();
    const line = `17 3 * * 1-5 /bin/sh '${client.copy()}' --run ${job} # certificate-vault:${job}`;
    assert.equal(client.crontab(), `MAILTO=root\n1 2 * * * true\n${line}\n`);
  },
);

inTurnOfPlaces(
  'rules 5 and 6: each file has its entity tag, and unchanged files are not rewritten',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    const server = await vault.relay();
    assert.equal((await vault.install(client, ['--server', server.url])).code, 0);
    const inodes = () => ['tls.crt', 'tls.key'].map((name) => statSync(join(client.destination, name)).ino);
    const before = inodes();
    assert.equal((await client.run(['--run'])).code, 0);
    assert.deepEqual(inodes(), before);
    const files = server.seen.filter(({ path }) => path.startsWith('/api/'));
    const tags = files.slice(-2).map(({ headers }) => headers['if-none-match'] ?? '');
    assert.equal(new Set(tags).size, 2);
    for (const tag of tags) assert.match(tag, /^".+"$/);
    assert.equal(vault.downloads().length, 2);
  },
);

inTurnOfShells(
  'rule 7: a repeated installation replaces the job, and another destination creates another job',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    const install = (args: string[]) => vault.install(client, args);
    assert.equal((await install(['--schedule', '1 1 * * *', '--reload-command', 'true'])).code, 0);
    const [job = ''] = client.jobs();
    assert.equal(
      (
        await install([
          '--destination',
          `${client.destination}/../tls`.replace('/tls/..', ''),
          '--schedule',
          '2 2 * * *',
        ])
      ).code,
      0,
    );
    assert.deepEqual(client.jobs(), [job]);
    assert.match(client.crontab(), /^2 2 .*\n$/);
    assert.match(readFileSync(client.copy().replace('install.sh', 'job'), 'utf8'), /^reload=$/m);
    assert.equal(
      (await install(['--destination', join(client.home, 'other'), '--schedule', '3 3 * * *'])).code,
      0,
    );
    assert.equal(client.jobs().length, 2);
    assert.match(client.crontab(), /^2 2 .*\n3 3 .*\n$/);
  },
);

inTurnOfPlaces(
  'rule 8: the served script needs no --server, and installs itself through a pipe',
  async (t, place) => {
    const vault = await clientVault(t, place);
    const client = machine(t, place);
    const input = await (await vault.get('/client/install.sh')).text();
    const launch = { input, environment: { SERVICE_API_KEY: vault.key } };
    const installed = await client.run([...vault.trust, ...usual(client)], launch);
    assert.equal(installed.code, 0, installed.stderr);
    assertPair(client);
    assert.equal(readFileSync(client.copy(), 'utf8'), input);
    const half = machine(t, place);
    const cut = await half.run([...vault.trust, ...usual(half)], {
      ...launch,
      input: input.slice(0, input.lastIndexOf('main')),
    });
    assert.equal(cut.stdout + cut.stderr, '');
    assert.equal(existsSync(half.destination), false);
  },
);
