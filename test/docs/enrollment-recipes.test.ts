/** The recipes of docs/how-to/enroll-machines.md: they parse, and a token is where only root reads it. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { parse } from 'yaml';
import { exchangeInput } from '../../src/domain/enrollments/enrollment-inputs.ts';
import { enrollmentRoutes } from '../../src/http/routes/access/enrollment-routes.ts';
import { needs } from '../harness/processes/missing-program.ts';

const root = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/how-to/enroll-machines.md', root), 'utf8');
const usage = readFileSync(new URL('assets/installer/usage.sh', root), 'utf8');

/** The fenced blocks of a language below a heading. */
function blocks(language: string, heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const fence = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  return [...section.matchAll(fence)].map(([, text = '']) => text);
}

type CloudConfig = {
  readonly write_files: readonly {
    readonly path: string;
    readonly permissions: string;
    readonly owner: string;
    readonly content: string;
  }[];
  readonly runcmd: readonly string[];
};
type Play = {
  readonly tasks: readonly Readonly<Record<string, unknown>>[];
};
type Compose = {
  readonly services: Readonly<
    Record<string, { readonly secrets: readonly string[]; readonly volumes: readonly string[] }>
  >;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
};

const [cloudText = ''] = blocks('yaml', 'cloud-init');
const cloud = parse(cloudText) as CloudConfig;
const [playText = ''] = blocks('yaml', 'Ansible');
const [play] = parse(playText) as readonly Play[];
const [composeText = ''] = blocks('yaml', 'Containers');
const compose = parse(composeText) as Compose;
const [dockerfile = ''] = blocks('dockerfile', 'Containers');
const scripts = [
  ...blocks('sh', 'Enroll a machine'),
  ...blocks('sh', 'Containers'),
  ...cloud.write_files.map(({ content }) => content).filter((content) => content.includes('install.sh')),
];

suite('the recipes for enrollment', () => {
  test('pass the token to no program as an argument, and build it into no image', () => {
    const argv = JSON.stringify([scripts, cloud.runcmd, play, dockerfile]);
    assert.equal(scripts.length, 3);
    assert(!argv.includes('ve_'));
    assert(!/^(ARG|ENV)|token/im.test(dockerfile));
    assert(playText.includes('- --enroll=-\n        stdin: "{{ enrollment_token }}"'));
  });

  test('use only options of the installer', () => {
    const used = [...scripts, playText].flatMap((text) =>
      text
        .split('\n')
        .filter((line) => !/^ *(curl|apk) /.test(line) || line.includes('| sh -s --'))
        .flatMap((line) => (line.split('| sh -s --').at(-1) ?? '').match(/(?<=^|[\s"-])--[a-z-]+/g) ?? []),
    );
    assert(used.length > 20, used.join(' '));
    const unknown = new Set(used.filter((option) => option !== '--enroll' && !usage.includes(` ${option} `)));
    assert.deepEqual([...unknown], []);
  });

  test('for shells have valid syntax', needs('dash'), () => {
    for (const input of scripts) {
      const { status, stderr } = spawnSync('dash', ['-n'], { input, encoding: 'utf8' });
      assert.deepEqual([status, stderr], [0, '']);
    }
  });

  test(
    'over HTTP send a request of their own for each machine, and the same one again',
    needs('openssl'),
    (t) => {
      const [recipe = ''] = blocks('sh', 'Over HTTP');
      assert(recipe.includes('curl -fsS -H @/root/enrollment-header'));
      const sent = (home: string) => {
        // Instead of a request, prints the body.
        const curl = `curl() { while [ "$1" != --json ]; do shift; done; printf '%s' "$2"; }\n`;
        const script = curl + recipe.replaceAll('/root/', `${home}/`);
        const body: unknown = JSON.parse(execFileSync('sh', ['-ec', script], { encoding: 'utf8' }));
        return exchangeInput.parse(body).request;
      };
      const homes = ['one', 'other'].map((name) => mkdtempSync(join(tmpdir(), `recipe-${name}-`)));
      t.after(() => {
        for (const home of homes) rmSync(home, { recursive: true });
      });
      const [first, other] = homes.map(sent);
      assert.notEqual(first, undefined);
      assert.notEqual(first, other);
      assert.deepEqual(homes.map(sent), [first, other]);
    },
  );

  test('over HTTP list every problem of an exchange', () => {
    const route = enrollmentRoutes.find(({ id }) => id === 'exchangeEnrollment');
    const listed = [...page.matchAll(/^\| \d{3} `(\w+)` \|/gm)].map(([, code]) => code);
    assert.deepEqual(listed.toSorted(), route?.problems.toSorted());
  });

  test('for cloud-init write the token and the script for root only, and remove both', () => {
    assert.match(cloudText, /^#cloud-config\n/);
    for (const { path, permissions, owner } of cloud.write_files) {
      assert.match(permissions, /^0[67]00$/, path);
      assert.equal(owner, 'root:root');
    }
    const [token, script] = cloud.write_files;
    assert(script?.content.includes(`--enroll ${token?.path}\nrm ${token?.path} `));
    assert.deepEqual(cloud.runcmd, [`sh ${script?.path}`]);
  });

  test('for Ansible keep the token out of the output', () => {
    const tasks = play?.tasks.filter((task) => JSON.stringify(task).includes('enrollment_token')) ?? [];
    assert.deepEqual(
      tasks.map((task) => task.no_log),
      [true],
    );
  });

  test('for containers mount the secret and the volumes that they declare', () => {
    const [service] = Object.values(compose.services);
    assert.deepEqual(service?.secrets, Object.keys(compose.secrets));
    assert.deepEqual(
      service?.volumes.map((volume) => volume.split(':')[0]),
      Object.keys(compose.volumes),
    );
    assert(scripts.some((text) => text.includes(`--enroll /run/secrets/${service?.secrets[0]}`)));
  });
});
