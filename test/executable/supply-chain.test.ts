/**
 * What comes from others comes as it was when somebody chose it: one version, one checksum, and nothing of it runs at
 * install time.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

type Locked = {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
};
const { '': own, ...locked } = lock.packages as Record<string, Locked>;

const kinds = ['dependencies', 'devDependencies', 'optionalDependencies'] as const;
const direct = kinds.flatMap((kind) => Object.entries(manifest[kind] as Record<string, string>));

test('package.json has exact versions and no overrides', () => {
  assert.ok(direct.length > 25);
  for (const [name, version] of direct) assert.match(version, /^\d+\.\d+\.\d+(-beta\.\d+)?$/, name);
  assert.deepEqual(
    Object.keys(manifest).filter((key) => /overrides|resolutions|bundle|peer|workspaces/i.test(key)),
    [],
  );
});

test('package-lock.json matches package.json', () => {
  for (const kind of kinds) assert.deepEqual((own as Record<string, unknown>)[kind], manifest[kind]);
  for (const [name, version] of direct) assert.equal(locked[`node_modules/${name}`]?.version, version, name);
});

test('package-lock.json has a SHA-512 for each package, and each package comes from the registry', () => {
  const packages = Object.entries(locked);
  assert.ok(packages.length > 150);
  for (const [path, { version, integrity, resolved, link }] of packages) {
    assert.match(version ?? '', /^\d+\.\d+\.\d+/, path);
    assert.match(integrity ?? '', /^sha512-[A-Za-z0-9+/]{86}==$/, path);
    assert.equal(link, undefined, path);
    assert.match(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);
  }
});

test('package-lock.json pins the platform-specific packages of all platforms', () => {
  for (const platform of ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64', 'win32-x64']) {
    for (const name of [
      `@biomejs/cli-${platform}`,
      `@esbuild/${platform}`,
      `@typescript/typescript-${platform}`,
    ]) {
      assert.ok(locked[`node_modules/${name}`], `${name} is not in package-lock.json`);
    }
  }
});

test('npm is configured to ignore scripts of packages and to save exact versions', () => {
  const setting = (name: string) =>
    execFileSync('npm', ['config', 'get', name], { cwd: root, encoding: 'utf8' }).trim();
  assert.equal(setting('ignore-scripts'), 'true');
  assert.equal(setting('save-exact'), 'true');
  const own = Object.keys(manifest.scripts).filter((name) =>
    /install|prepare|prepublish|^(pre|post)/.test(name),
  );
  assert.deepEqual(own, []);
});
