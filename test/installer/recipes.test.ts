/**
 * docs/reference/client-installer.md: every recipe works and installs the documented files, and the documented output
 * is real.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readInstaller } from '../../src/cli/runtime/assets.ts';
import { finish, type Machine, machine, modeOf } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';

const doc = readFileSync(
  fileURLToPath(new URL('../../docs/reference/client-installer.md', import.meta.url)),
  'utf8',
);
const [manual = '', list = ''] = doc.split('\n## Recipes\n');
const recipes = list
  .split('\n### ')
  .slice(1)
  .map((text) => ({ name: text.slice(0, text.indexOf('\n')), text }));

function block(text: string, kind: string): string {
  return new RegExp(`\`\`\`${kind}\n(.*?)\`\`\``, 's').exec(text)?.[1] ?? '';
}

/** Splits a command into words as a shell does. */
async function words(command: string): Promise<string[]> {
  const { stdout } = await finish('sh', ['-c', `set -f; printf '%s\\n' ${command}`], {
    environment: { PATH: process.env.PATH },
  });
  return stdout.trim().split('\n');
}

/** The values of a repeatable option. */
function values(args: readonly string[], option: string): string[] {
  return args.flatMap((word, index) => (word === option ? [args[index + 1] ?? ''] : []));
}

test('every required service has a recipe', () => {
  const names = recipes.map(({ name }) => name);
  assert.deepEqual(names, ['nginx', 'Apache', 'HAProxy', 'Postfix', 'PostgreSQL', 'Tomcat', 'Proxmox VE']);
});

for (const { name, text } of recipes) {
  test(
    `the recipe for ${name} works, and installs the documented files, owners and modes`,
    needs('curl'),
    async (t) => {
      const client = machine(t);
      const password = join(client.home, 'keystore-password');
      writeFileSync(password, 'changeit\n');
      const args = (await words(block(text, 'sh'))).map((word) =>
        word === '/root/keystore-password' ? password : word,
      );
      const [destination = ''] = values(args, '--destination');
      const owner = values(args, '--owner')[0] ?? 'root';
      const rows = [...text.matchAll(/^\| (\/\S+) \| (.+?) \| (.+?) \|$/gm)].map(([, file, by, mode]) => ({
        file,
        by,
        mode,
      }));
      const outputs = values(args, '--file').map((file) => file.split('=')[1] ?? file);
      assert.deepEqual(
        rows.map(({ file }) => file),
        outputs.map((output) => join(destination, output)),
      );
      const names = (path: string) => block(text, 'conf').includes(path);
      assert(
        rows.filter(({ file = '' }) => names(file) || names(file.replace(/\.key$/, ''))).length ===
          rows.length,
      );
      const [reload = ''] = values(args, '--reload-command');
      assert.equal(
        (await finish('sh', ['-n', '-c', reload], { environment: { PATH: process.env.PATH } })).code,
        0,
      );

      const dry = await client.run(['--server', 'https://vault.example', ...args, '--dry-run']);
      assert.equal(dry.code, 0, dry.stderr);
      const [certificate = ''] = values(args, '--certificate');
      const vault = await clientVault(t, { certificates: [certificate] });
      const elsewhere = args.filter(
        (word, index) =>
          !['--owner', '--group', '--verify'].some((one) => [word, args[index - 1]].includes(one)),
      );
      const real = [
        ...elsewhere,
        '--server',
        vault.url,
        '--destination',
        client.destination,
        '--reload-command',
        'true',
      ];
      const installed = await client.run(real, { environment: { SERVICE_API_KEY: vault.key } });
      assert.equal(installed.code, 0, installed.stderr);
      for (const [index, { by, mode }] of rows.entries()) {
        if (by === 'set by /etc/pve') continue;
        assert.equal(by, `${owner}:${owner}`);
        assert.equal(modeOf(join(client.destination, outputs[index] ?? '')), Number.parseInt(mode ?? '', 8));
      }
    },
  );
}

/** Replaces what differs between machines and days. */
function plain(text: string, client: Machine, server: string): string {
  return text
    .replaceAll(client.destination, '/etc/nginx/tls')
    .replaceAll(server, 'https://vault.example')
    .replaceAll(/web-\d+/g, 'web-ID')
    .replaceAll(/[A-Z][a-z]{2} [ \d]\d [\d:]+ \d{4} GMT|[\d-]+T[\d:]+Z/g, 'TIME');
}

test('the output in the manual matches the output of the command at its top', needs('curl'), async (t) => {
  const command = block(manual, 'sh').replace(/^.* sh -s -- \\\n/, '');
  const vault = await clientVault(t);
  const client = machine(t);
  for (const program of ['nginx', 'systemctl']) client.fake(program, 'exit 0');
  const args = (await words(command)).map((word) =>
    word === 'https://vault.example' ? vault.url : word === '/etc/nginx/tls' ? client.destination : word,
  );
  const installed = await client.run(args, { environment: { SERVICE_API_KEY: vault.key } });
  assert.equal(installed.code, 0, installed.stderr);
  const [output = '', status = ''] = [...manual.matchAll(/```text\n(.*?)```/gs)].map(
    ([, text]) => text ?? '',
  );
  assert.equal(plain(installed.stderr, client, vault.url), plain(output, client, vault.url));
  const { stdout } = await client.run(['--status']);
  assert.equal(
    `$ sh install.sh --status\n${plain(stdout, client, vault.url)}`,
    plain(status, client, vault.url),
  );
});

test('the manual lists every exit code and limit of the script, and --help lists every option', async (t) => {
  const script = readInstaller();
  const codes = [...script.matchAll(/^exit_\w+=(\d+)$/gm)].map(([, code]) => code ?? '');
  for (const code of codes) assert.match(manual, new RegExp(`^\\| (\\d+, )?${code}(, \\d+)? \\|`, 'm'));
  const limits = [...script.matchAll(/\$\{CERTIFICATE_VAULT(_\w+):-\}" (\d+)/g)];
  for (const [, name, value] of limits) assert(manual.includes(`${name}\` (${value})`), `${name} ${value}`);
  const { stdout } = await machine(t).run(['--help']);
  for (const [, option = ''] of script.matchAll(/^ +(--[a-z-]+)\) /gm))
    assert(stdout.includes(option), option);
});
