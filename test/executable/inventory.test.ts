/**
 * What is in the executable is known: every package of others with its license, and a bill of materials that is valid.
 * What was bundled is read out of the executable itself, so that build-inventory.ts cannot agree with its own mistakes.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bundledPackages, npmParts } from '../../build-inventory.ts';

const root = join(import.meta.dirname, '..', '..');
const require = createRequire(import.meta.url);
const program = join(root, 'dist', 'vault');
const executable = readFileSync(program);
const licenses = execFileSync(program, ['licenses'], { encoding: 'utf8', maxBuffer: 10_000_000 });

type Component = {
  readonly name: string;
  readonly group?: string;
  readonly version?: string;
  readonly purl: string;
  readonly 'bom-ref': string;
  readonly components?: readonly Component[];
};
type Bill = {
  readonly metadata: { readonly component: { readonly hashes: readonly { readonly content: string }[] } };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
};
const bill: Bill = JSON.parse(
  execFileSync(process.execPath, ['build.mjs', '--sbom'], { cwd: root, encoding: 'utf8' }),
);

/**
 * The script in the executable: from esbuild's first words to the end of the text. Node's own parts name packages too.
 */
const script = executable
  .subarray(executable.indexOf('"use strict";var __create=Object.create;'))
  .toString('latin1')
  .replace(/\0.*$/s, '');

/** esbuild writes the path of each module before it; of the console, which has no such paths, preact is known. */
const bundled = [
  ...new Set([
    'node_modules/preact',
    ...[...script.matchAll(/"((?:node_modules\/(?:@[\w.-]+\/)?[\w.-]+\/)+)[^"\s]*"\(/g)].map(
      ([, folder = '']) => folder.slice(0, -1).replace(/^(.*node_modules\/(?:@[^/]+\/)?[^/]+).*$/, '$1'),
    ),
  ]),
];

test('the search for packages in the executable finds known ones, such as zod and kysely', () => {
  for (const name of ['zod', 'kysely', 'jose', 'jws', 'pino', 'tsyringe/node_modules/tslib']) {
    assert.ok(bundled.includes(`node_modules/${name}`), `${name} in ${bundled.join(', ')}`);
  }
});

test('"vault licenses" has every package in the executable, with the text of its license', () => {
  for (const folder of bundled) {
    const { name, version, license } = manifestOf(folder);
    const heading = `\n${'='.repeat(80)}\n${name} ${version}: ${license}\n${'='.repeat(80)}\n\n`;
    assert.ok(licenses.includes(heading), `${name} ${version} has no section`);
    const names = readdirSync(join(root, folder));
    const file =
      names.find((one) => /^licen[cs]e/i.test(one)) ?? names.find((one) => /^readme/i.test(one)) ?? '';
    // Some packages have it at the end of their README alone.
    const [text = ''] = readFileSync(join(root, folder, file), 'utf8')
      .split(/^## licen[cs]e$/im)
      .map((part) => part.trim())
      .slice(-1);
    assert.ok(text.length > 100, `${folder}/${file} is no license`);
    assert.ok(licenses.includes(heading + text), `the text of ${name} is missing`);
  }
});

test('"vault licenses" has the licenses of the vault, Node.js with its parts, SQLite and the list of passwords', () => {
  const { version } = manifestOf('.');
  assert.ok(licenses.startsWith(`Certificate Vault ${version} is under the license Apache-2.0`));
  assert.match(licenses, /Apache License\s+Version 2\.0/);
  const node = execFileSync(program, ['licenses'], { encoding: 'utf8', maxBuffer: 10_000_000 });
  for (const words of ['Copyright Node.js contributors', '- V8', '- OpenSSL', '- libuv', '- ICU']) {
    assert.ok(node.includes(words), words);
  }
  assert.match(licenses, /^SQLite \d[\d.]+: blessing$/m);
  assert.match(licenses, /May you do good and not evil\./);
  assert.match(licenses, /Dan Wheeler and Dropbox/);
});

test('the bill of materials is valid according to the CycloneDX 1.6 schema', () => {
  // A schema of draft 7, with formats that no JSON of ours contains.
  const { default: Ajv } = require('ajv') as typeof import('ajv');
  const { default: addFormats } = require('ajv-formats') as typeof import('ajv-formats');
  const ajv = new Ajv({ strict: false, formats: { 'iri-reference': true, 'idn-email': true } });
  addFormats.default(ajv);
  const schema = (name: string) =>
    JSON.parse(
      readFileSync(
        join(root, `node_modules/@cyclonedx/cyclonedx-library/res/schema/${name}.SNAPSHOT.schema.json`),
        'utf8',
      ),
    ) as object;
  for (const name of ['spdx', 'jsf-0.82']) {
    ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
  }
  ajv.addSchema(schema('cryptography-defs'));
  const validate = ajv.compile(schema('bom-1.6'));
  assert.ok(validate(bill), JSON.stringify(validate.errors, undefined, 2));
  assert.equal(validate({ ...bill, specVersion: 1 }), false);
});

test('the bill of materials has the hash of the executable and lists all components in it', () => {
  const [hash] = bill.metadata.component.hashes;
  assert.equal(hash?.content, createHash('sha256').update(executable).digest('hex'));
  const purls = bill.components.map(({ purl }) => purl);
  for (const folder of bundled) {
    const { name, version } = manifestOf(folder);
    assert.ok(purls.includes(`pkg:npm/${name.replace('@', '%40')}@${version}`), name);
  }
  const node = bill.components.find(({ name }) => name === 'Node.js');
  assert.equal(node?.version, process.versions.node);
  const inside = new Map(node?.components?.map(({ name, version }) => [name, version]));
  assert.equal(inside.get('openssl'), process.versions.openssl);
  assert.equal(inside.get('v8'), process.versions.v8);
  assert.equal(bill.components.find(({ name }) => name === 'SQLite')?.version, sqliteVersion());
});

test('each dependency in the bill of materials refers to a component in it', () => {
  const all = bill.components.flatMap((component) => [component, ...(component.components ?? [])]);
  const refs = new Set(all.map((component) => component['bom-ref']));
  assert.equal(refs.size, all.length, 'two components have the same name and version');
  const [own, ...others] = bill.dependencies;
  assert.equal(own?.dependsOn.length, bill.components.length);
  for (const { ref, dependsOn } of others) {
    for (const each of [ref, ...dependsOn]) assert.ok(refs.has(each), `${each} is not in the bill`);
  }
  const needs = (name: string) =>
    others.find(({ ref }) => ref.startsWith(`pkg:npm/${name}@`))?.dependsOn.join(' ') ?? '';
  assert.match(needs('jsonwebtoken'), /pkg:npm\/jws@/);
  assert.match(needs('better-sqlite3'), /pkg:generic\/sqlite@.*/);
  assert.match(needs('tsyringe'), /pkg:npm\/tslib@1\./);
});

test('bundledPackages returns the folders of bundled packages, including nested ones', () => {
  const inputs = [
    'src/a.ts',
    'node_modules/a/i.js',
    'node_modules/@b/c/i.js',
    'node_modules/a/node_modules/d/x/i.js',
  ];
  const metafile = {
    outputs: { 'out.js': { inputs: Object.fromEntries(inputs.map((path) => [path, {}])) } },
  };
  assert.deepEqual(bundledPackages([metafile, metafile]), [
    'node_modules/@b/c',
    'node_modules/a',
    'node_modules/a/node_modules/d',
  ]);
});

const refused: readonly (readonly [title: string, license: string | undefined, file: string, why: RegExp])[] =
  [
    ['without a license', undefined, 'LICENSE', /^a names no license/],
    ['without the text of its license', 'MIT', 'README.md', /^a comes without the text of its license/],
    ['under a license that is not allowed', 'GPL-3.0-only', 'LICENSE', /^a is under GPL-3.0-only/],
    ['under an unknown license', 'SEE LICENSE IN LICENSE', 'LICENSE', /^a is under SEE/],
  ];
for (const [title, license, file, why] of refused) {
  test(`the build rejects a package ${title}`, (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'inventory-'));
    t.after(() => rmSync(dir, { recursive: true }));
    const folder = 'node_modules/a';
    mkdirSync(join(dir, folder), { recursive: true });
    writeFileSync(join(dir, folder, file), 'the text of a license');
    const locked = { version: '1.0.0', ...(license !== undefined && { license }) };
    writeFileSync(join(dir, 'package-lock.json'), JSON.stringify({ packages: { [folder]: locked } }));
    assert.throws(
      () => npmParts(dir, [folder]),
      ({ message }: Error) => why.test(message),
    );
  });
}

/** Old packages have a list of licenses. */
function manifestOf(folder: string): { name: string; version: string; license: string } {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  return { ...manifest, license: manifest.license ?? manifest.licenses?.[0]?.type };
}

/** As the library itself says. */
function sqliteVersion(): string {
  const Database = require('better-sqlite3');
  const db = new Database(':memory:');
  try {
    return db.prepare('SELECT sqlite_version()').pluck().get();
  } finally {
    db.close();
  }
}
