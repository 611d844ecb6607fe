/**
 * Whoever has the sources of a release can make its executable and compare: the same bytes come out of another folder,
 * by another user's settings, at another time. What the executable does when it runs is in the tests beside this one.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'reproducible-'));
after(() => rmSync(dir, { recursive: true }));

/** The bills of materials beside the executables. */
const bills: string[] = [];

test('two builds of the same sources give the same bytes, and the same bill of materials', {
  timeout: 600_000,
}, async () => {
  const [one, other] = await Promise.all([
    built('here', { TZ: 'UTC', LANG: 'C' }, '022'),
    built('and/a longer way/there', { TZ: 'Asia/Tokyo', LANG: 'tr_TR.UTF-8', NO_COLOR: '1' }, '077'),
  ]);
  const different = one.compare(other) === 0 ? undefined : one.findIndex((byte, at) => byte !== other[at]);
  assert.equal(different, undefined, `they differ, first at byte ${different}`);
  assert.equal(bills[0], bills[1]);
  assert.ok(bills[0]?.includes('CycloneDX'));
});

test('the V8 option for a reproducible code cache does not change the version tag of the cache', () => {
  // Node compares this tag, and takes no cache with another: the start would be slow again, in silence.
  const tag = (...options: string[]) =>
    execFileSync(process.execPath, [...options, '--print', 'v8.cachedDataVersionTag()'], {
      encoding: 'utf8',
    });
  assert.match(readFileSync(join(root, 'build.mjs'), 'utf8'), /'--random-seed=1'/);
  assert.equal(tag('--random-seed=1'), tag());
  assert.notEqual(tag('--hash-seed=1'), tag());
});

/** The executable, built from a copy of the sources in a folder of this name. */
async function built(name: string, environment: NodeJS.ProcessEnv, umask: string): Promise<Buffer> {
  const copy = join(dir, name);
  mkdirSync(copy, { recursive: true });
  for (const part of [
    ...['src', 'assets', 'build.mjs', 'build-console.mjs', 'package.json', 'package-lock.json'],
    ...['build-inventory.ts', 'build-sbom.ts', 'LICENSE', 'tsconfig.json'],
  ]) {
    cpSync(join(root, part), join(copy, part), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  const home = join(copy, 'home');
  mkdirSync(home);
  const script = `umask ${umask} && exec "$0" build.mjs`;
  await promisify(execFile)('sh', ['-c', script, process.execPath], {
    cwd: copy,
    env: { PATH: process.env.PATH, HOME: home, ...environment },
  });
  bills.push(readFileSync(join(copy, 'dist', 'vault.cdx.json'), 'utf8'));
  return readFileSync(join(copy, 'dist', 'vault'));
}
