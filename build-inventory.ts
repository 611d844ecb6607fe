/**
 * What of others is inside the executable: found out from what esbuild really bundled, not from what is installed. From
 * it come the licenses that `vault licenses` prints, and the bill of materials beside the executable.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What esbuild tells about a build, as far as it matters here. */
export type Metafile = {
  readonly outputs: Readonly<Record<string, { readonly inputs: Readonly<Record<string, unknown>> }>>;
};

/** A work of others in the executable. */
export type Part = {
  readonly name: string;
  readonly version: string | undefined;
  readonly type: 'library' | 'platform' | 'data';
  /** Package URL (ECMA-427): its name for whoever looks for known weaknesses. */
  readonly purl: string;
  readonly cpe?: string;
  /** SPDX identifier or expression. */
  readonly license: string;
  readonly text: string;
  /** Of the npm package that it came in, as package-lock.json has it. */
  readonly integrity?: string;
  /** The purls of what it needs itself. */
  readonly needs: readonly string[];
  /** What it consists of: name and version. */
  readonly inside?: Readonly<Record<string, string>>;
};

export type Manifest = {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
};

type Lock = { readonly packages: Readonly<Record<string, LockedPackage>> };
type LockedPackage = {
  readonly version?: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
};

/** Licenses that ask for their text to be passed on, and for nothing more of those who pass a program on. */
const acceptable = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'MIT-0',
  'Unlicense',
];

const licenseFile = /^(licen[cs]e|copying|notice|unlicense)\b/i;

/**
 * The folders of the packages that the builds took something from, such as `node_modules/tsyringe/node_modules/tslib`.
 */
export function bundledPackages(metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ outputs }) => Object.values(outputs).map(({ inputs }) => inputs));
  const folders = inputs
    .flatMap((input) => Object.keys(input))
    .flatMap((path) => /^.*\bnode_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? []);
  return [...new Set(folders)].sort();
}

/**
 * The npm packages in these folders below `root`, and what is compiled into the addon of better-sqlite3. Throws where
 * one has no license, no text of it, or a license that is not known to be acceptable: such a package does not get in.
 */
export function npmParts(root: string, folders: readonly string[]): Part[] {
  const lock: Lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const addon = folders.includes('node_modules/better-sqlite3') ? ['node_modules/node-addon-api'] : [];
  const all = new Set([...folders, ...addon]);
  const parts = [...all].map((folder) => npmPart(root, folder, lock, all));
  return parts.sort((a, b) => (a.purl < b.purl ? -1 : 1));
}

function npmPart(root: string, folder: string, lock: Lock, all: ReadonlySet<string>): Part {
  const locked = lock.packages[folder];
  const name = packageName(folder);
  if (locked?.version === undefined) throw new Error(`${folder} is not in package-lock.json`);
  const license = locked.license ?? olderLicense(join(root, folder));
  if (license === undefined) throw new Error(`${name} names no license, and must not be bundled`);
  if (!acceptable.includes(license)) {
    throw new Error(`${name} is under ${license}, which is not among ${acceptable.join(', ')}`);
  }
  const text = licenseFiles(join(root, folder));
  if (text === '') throw new Error(`${name} comes without the text of its license, and must not be bundled`);
  const needs = Object.keys(locked.dependencies ?? {})
    .map((needed) => resolved(folder, needed, all))
    .flatMap((found) =>
      found === undefined ? [] : npmPurl(packageName(found), lock.packages[found]?.version),
    );
  return {
    name,
    version: locked.version,
    type: 'library',
    purl: npmPurl(name, locked.version),
    license,
    text,
    ...(locked.integrity !== undefined && { integrity: locked.integrity }),
    needs: name === 'better-sqlite3' ? [...needs, sqlitePurl(root)] : needs,
  };
}

/** The only license in `licenses` of a package.json, a form of old packages that package-lock.json leaves out. */
function olderLicense(folder: string): string | undefined {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) return undefined;
  const { licenses = [] }: { licenses?: { type?: string }[] } = JSON.parse(readFileSync(path, 'utf8'));
  return licenses.length === 1 ? licenses[0]?.type : undefined;
}

/** Where Node would find the package `name` from this folder, among those that are bundled. */
function resolved(folder: string, name: string, all: ReadonlySet<string>): string | undefined {
  const steps = folder.split(/\/?\bnode_modules\//);
  for (let kept = steps.length; kept > 0; kept--) {
    const place = [...steps.slice(0, kept), name].join('/node_modules/').replace(/^\//, '');
    if (all.has(place)) return place;
  }
  return undefined;
}

/** SQLite, of which better-sqlite3 carries the source that its addon is compiled from. */
export function sqlitePart(root: string): Part {
  const version = sqliteVersion(root);
  return {
    name: 'SQLite',
    version,
    type: 'library',
    purl: sqlitePurl(root),
    cpe: `cpe:2.3:a:sqlite:sqlite:${version}:*:*:*:*:*:*:*`,
    license: 'blessing',
    text: `SQLite is in the public domain; its authors disclaim copyright. In place of a legal notice, a blessing:

    May you do good and not evil.
    May you find forgiveness for yourself and forgive others.
    May you share freely, never taking more than you give.
`,
    needs: [],
  };
}

function sqlitePurl(root: string): string {
  return `pkg:generic/sqlite@${sqliteVersion(root)}`;
}

function sqliteVersion(root: string): string {
  const header = readFileSync(join(root, 'node_modules/better-sqlite3/deps/sqlite3/sqlite3.h'), 'utf8');
  const version = /^#define SQLITE_VERSION\s+"([\d.]+)"/m.exec(header)?.[1];
  if (version === undefined) throw new Error('sqlite3.h names no version');
  return version;
}

/** What Node calls them, where others know them by another name. Not listed are versions of interfaces and of data. */
const nodeNames: Readonly<Record<string, string>> = { ares: 'c-ares', uv: 'libuv' };
const noParts = ['node', 'modules', 'napi', 'cldr', 'tz', 'unicode'];

/** Node.js itself. `text` is its LICENSE, which holds those of its parts too; `versions` are its `process.versions`. */
export function nodePart(
  npmName: string,
  text: string,
  versions: Readonly<Record<string, string | undefined>>,
  integrity: string | undefined,
): Part {
  const { node: version = '' } = versions;
  const inside = Object.entries(versions).flatMap(([name, value]) =>
    noParts.includes(name) || !value ? [] : [[nodeNames[name] ?? name, value] as const],
  );
  return {
    name: 'Node.js',
    version,
    type: 'platform',
    purl: npmPurl(npmName, version),
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    license: 'MIT',
    text,
    ...(integrity !== undefined && { integrity }),
    needs: [],
    inside: Object.fromEntries(inside),
  };
}

/** The common passwords, which were taken out of a package once and are part of our sources. */
export function wordListPart(root: string): Part {
  return {
    name: '@zxcvbn-ts/language-common (a list of common passwords)',
    version: undefined,
    type: 'data',
    purl: 'pkg:npm/%40zxcvbn-ts/language-common',
    license: 'MIT',
    text: readFileSync(join(root, 'src/domain/access/common-passwords.license.txt'), 'utf8'),
    needs: [],
  };
}

/** Everything for people: our license, a list, and the text of each license. */
export function licensesText(manifest: Manifest, ownLicense: string, parts: readonly Part[]): string {
  const title = ({ name, version, license }: Part) => `${[name, version ?? []].flat().join(' ')}: ${license}`;
  const line = '='.repeat(80);
  const sections = parts.map((part) => `${line}\n${title(part)}\n${line}\n\n${part.text.trim()}\n`);
  return [
    `Certificate Vault ${manifest.version} is under the license ${manifest.license}, whose text comes first. It contains these works of others,`,
    'each under its own license, whose texts follow in the same order:\n',
    ...parts.map((part) => `  ${title(part)}`),
    `\n${line}\nCertificate Vault ${manifest.version}: ${manifest.license}\n${line}\n\n${ownLicense.trim()}\n`,
    ...sections,
  ].join('\n');
}

function npmPurl(name: string, version: string | undefined): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

function packageName(folder: string): string {
  return folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/**
 * The files with the license of a package, or what its README says under the heading of it; empty if there is neither.
 */
function licenseFiles(folder: string): string {
  if (!existsSync(folder)) return '';
  const names = readdirSync(folder);
  const files = names.filter((name) => licenseFile.test(name)).sort();
  const texts = files.map((name) => readFileSync(join(folder, name), 'utf8').trim());
  const readme = names.find((name) => /^readme\.md$/i.test(name));
  return texts.length > 0 || readme === undefined
    ? texts.join('\n\n')
    : licenseIn(readFileSync(join(folder, readme), 'utf8'));
}

/** A name alone is no license: its text says what must be kept. */
function licenseIn(readme: string): string {
  const lines = readme.split('\n');
  const begin = lines.findLastIndex((line) => /^#+ licen[cs]e\b/i.test(line));
  const text =
    begin < 0
      ? ''
      : lines
          .slice(begin + 1)
          .join('\n')
          .trim();
  return text.includes('Copyright') && text.includes('above copyright notice') ? text : '';
}
